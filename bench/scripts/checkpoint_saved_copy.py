"""How long it takes to write a folder of 1 GiB once and to sync it to the disk that trainlib keeps checkpoints on."""

import os
import shutil
import time
from pathlib import Path

from bench.scripts import gibibyte
from bench.scripts.side import finish, folder

checkpoint = gibibyte.write(folder() / "checkpoint")
target = Path(os.environ["TRAINLIB_HOME"]) / "copy"
started = time.perf_counter()
shutil.copytree(checkpoint, target)
for path in (*target.iterdir(), target):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
seconds = time.perf_counter() - started
shutil.rmtree(target)
finish(saved_s=seconds)
