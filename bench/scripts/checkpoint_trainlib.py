"""How long report() blocks rank 0 with a directory checkpoint of 1 GiB under trainlib."""

import shutil
import time

from bench.scripts.side import finish, folder
from trainlib import Checkpoint, ScalingConfig, get_context, report
from trainlib.torch import TorchTrainer


def train_func(config):
    from bench.scripts import gibibyte

    if get_context().get_world_rank() != 0:
        report({"epoch": 0})
        return None
    checkpoint = Checkpoint.from_directory(gibibyte.write(config["folder"] / "checkpoint"))
    started = time.perf_counter()
    report({"epoch": 0}, checkpoint=checkpoint)
    return time.perf_counter() - started


result = TorchTrainer(
    train_func, train_loop_config={"folder": folder()}, scaling_config=ScalingConfig(num_workers=2)
).fit()
shutil.rmtree(result.checkpoint.path)
finish(block_s=result.returned[0])
