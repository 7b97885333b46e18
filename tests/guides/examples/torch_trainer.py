#: ours: guide 003 includes a file of this name: a dataset, a worker's shard of it, and a function for each worker
import ray
import torch

from trainlib import Checkpoint, ScalingConfig, session
from trainlib.torch import TorchTrainer, prepare_model


def train_loop_per_worker(config):
    model = prepare_model(torch.nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    shard = session.get_dataset_shard("train")
    for epoch in range(config["num_epochs"]):
        rows = 0
        for batch in shard.iter_torch_batches(batch_size=8, dtypes=torch.float32):
            loss = torch.nn.functional.mse_loss(model(batch["x"].unsqueeze(1)), batch["y"].unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rows += len(batch["x"])
        session.report(
            {"loss": loss.item(), "rows": rows, "epoch": epoch},
            checkpoint=Checkpoint.from_dict({"epoch": epoch, "model": model.module.state_dict()}),
        )


train_dataset = ray.data.from_items([{"x": x / 32, "y": 2 * x / 32 + 1} for x in range(32)])
trainer = TorchTrainer(
    train_loop_per_worker=train_loop_per_worker,
    train_loop_config={"num_epochs": 2, "lr": 0.1},
    scaling_config=ScalingConfig(num_workers=2),
    datasets={"train": train_dataset},
)
result = trainer.fit()
print(result.metrics["loss"])
