#: ours: guide 003 includes a file of this name: metrics of all workers, checkpoints, and a store of one's own
import torch
import torch.distributed

from trainlib import Checkpoint, RunConfig, ScalingConfig, session
from trainlib.torch import TorchTrainer


def train_func(config):
    for step in range(config["num_steps"]):
        loss = torch.tensor(float(step + session.get_world_rank()))
        torch.distributed.all_reduce(loss)
        metrics = {"step": step, "mean_loss": loss.item() / session.get_world_size()}
        session.report(metrics, checkpoint=Checkpoint.from_dict({"step": step}))


trainer = TorchTrainer(
    train_func,
    train_loop_config={"num_steps": 3},
    scaling_config=ScalingConfig(num_workers=2),
    run_config=RunConfig(storage_path=STORAGE),
)
result = trainer.fit()
