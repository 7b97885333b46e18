"""How long it takes until a directory checkpoint of 1 GiB is saved under trainlib: synced to the disk, and READY."""

import shutil
import time
from pathlib import Path

from bench.scripts.side import finish, folder
from trainlib import Checkpoint, ScalingConfig, get_context, report
from trainlib.torch import TorchTrainer


def train_func(config):
    from bench.scripts import gibibyte

    if get_context().get_world_rank() != 0:
        report({"epoch": 0})
        return None
    checkpoint = Checkpoint.from_directory(gibibyte.write(config["folder"] / "checkpoint"))
    saved = Path(get_context().get_trial_dir()) / "checkpoint_000000"
    started = time.perf_counter()
    report({"epoch": 0}, checkpoint=checkpoint)
    while not saved.is_symlink():  # it is linked once it is READY
        time.sleep(0.005)
    return time.perf_counter() - started


result = TorchTrainer(
    train_func, train_loop_config={"folder": folder()}, scaling_config=ScalingConfig(num_workers=2)
).fit()
shutil.rmtree(result.checkpoint.path)
finish(saved_s=result.returned[0])
