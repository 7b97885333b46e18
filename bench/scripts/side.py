"""What the scripts share: their folder, and the times and results that they write into it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULT = "result.json"
TURN = "TRAINLIB_BENCH_TURN"


def folder() -> Path:
    """The empty folder of this run."""
    return Path(sys.argv[1])


def turn() -> int:
    """Which run of its side this is, from 1."""
    return int(os.environ[TURN])


def leave(path: Path, text: str) -> None:
    """Write a file for another process, complete or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def mark(path: Path | str, at: float | None = None) -> None:
    """Write the time, now or ``at``."""
    leave(Path(path), repr(time.time() if at is None else at))


def marked(path: Path) -> float:
    """The time that :func:`mark` wrote."""
    return float(path.read_text())


def wait_for(path: Path, timeout: float = 120.0) -> None:
    """Wait until the file exists."""
    until(path.exists, timeout)


def until(happens: Callable[[], bool], timeout: float = 120.0) -> None:
    """Wait until something happens."""
    deadline = time.monotonic() + timeout
    while not happens():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{happens} did not become true within {timeout:g} s")
        time.sleep(0.005)


def finish(**values: Any) -> None:
    """Write the measured numbers."""
    (folder() / RESULT).write_text(json.dumps(values))


def require_ray_train_v1() -> None:
    """Check that this is Ray Train V1. V2 has the same names, so a wrong setting would go unnoticed."""
    from ray.train.torch import TorchTrainer

    if TorchTrainer.__module__ != "ray.train.torch.torch_trainer":
        raise RuntimeError(f"{TorchTrainer.__module__} is not Ray Train V1: set RAY_TRAIN_V2_ENABLED=0")
