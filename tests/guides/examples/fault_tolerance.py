"""The guide's loading example, with a worker that kills itself in the first attempt."""

import os
import signal
import time
from pathlib import Path

import torch

import trainlib.torch
from trainlib import Checkpoint, FailureConfig, RunConfig, ScalingConfig, session
from trainlib.callbacks import LoggerCallback
from trainlib.torch import TorchTrainer


class Milestones(LoggerCallback):
    """Lets the worker know that its checkpoint has arrived, so that what is lost is always the same."""

    def log_trial_result(self, iteration, trial, result):
        Path(trial.logdir, f"epoch-{result['epoch']}").touch()


def train_func(config):
    model = torch.nn.Linear(4, 1)
    start_epoch = 0

    checkpoint = session.get_checkpoint()
    if checkpoint:
        checkpoint_dict = checkpoint.to_dict()
        model.load_state_dict(checkpoint_dict.get("model_weights"))
        start_epoch = checkpoint_dict.get("epoch", -1) + 1

    model = trainlib.torch.prepare_model(model)
    for epoch in range(start_epoch, config["num_epochs"]):
        if epoch == 3 and start_epoch == 0 and session.get_world_rank() == 1:
            while not Path(session.get_trial_dir(), "epoch-2").exists():
                time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        model(torch.ones(1, 4)).sum().backward()
        with torch.no_grad():
            model.module.bias.fill_(epoch)
        checkpoint = Checkpoint.from_dict(dict(epoch=epoch, model_weights=model.module.state_dict()))
        session.report({"epoch": epoch, "start_epoch": start_epoch}, checkpoint=checkpoint)


trainer = TorchTrainer(
    train_func,
    train_loop_config={"num_epochs": 5},
    scaling_config=ScalingConfig(num_workers=2),
    run_config=RunConfig(
        callbacks=[Milestones()],
        failure_config=FailureConfig(max_failures=1),
    ),
)
result = trainer.fit()

print(result.checkpoint.to_dict()["epoch"])
# 4
