"""From the SIGKILL of a worker to the first line of the resumed training function under trainlib."""

import os
import time

from bench.scripts.killing import kill_rank_1, step_until_killed
from bench.scripts.side import finish, folder, leave, mark, marked
from trainlib import Checkpoint, FailureConfig, RunConfig, ScalingConfig, get_checkpoint, get_context, report
from trainlib.torch import TorchTrainer


def train_func(config):
    now = time.time()
    rank = get_context().get_world_rank()
    if get_checkpoint() is not None:
        if rank == 0:
            mark(config["folder"] / "resumed", now)
        return
    report({"epoch": 0}, checkpoint=Checkpoint.from_directory(config["checkpoint"]))
    if rank == 1:
        leave(config["folder"] / "pid", str(os.getpid()))
    step_until_killed()


checkpoint = folder() / "checkpoint"
checkpoint.mkdir()
(checkpoint / "weights").write_bytes(os.urandom(1_000_000))
kill_rank_1()
TorchTrainer(
    train_func,
    train_loop_config={"folder": folder(), "checkpoint": checkpoint},
    scaling_config=ScalingConfig(num_workers=2),
    run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
).fit()
finish(recovery_s=marked(folder() / "resumed") - marked(folder() / "killed"))
