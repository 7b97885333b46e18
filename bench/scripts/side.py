"""What the scripts share: the folder they are given, and the marks and results that they leave in it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

RESULT = "result.json"


def folder() -> Path:
    """The empty folder that this run was given."""
    return Path(sys.argv[1])


def leave(path: Path, text: str) -> None:
    """Leave a word where another process finds it: whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def mark(path: Path, at: float | None = None) -> None:
    """Leave the time, now or ``at``."""
    leave(path, repr(time.time() if at is None else at))


def marked(path: Path) -> float:
    """The time that was left."""
    return float(path.read_text())


def wait_for(path: Path, timeout: float = 120.0) -> None:
    """Return when something has been left there."""
    deadline = time.monotonic() + timeout
    while not path.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{path} did not appear in {timeout:g} s")
        time.sleep(0.005)


def finish(**values: Any) -> None:
    """Tell what was measured."""
    (folder() / RESULT).write_text(json.dumps(values))


def require_ray_train_v1() -> None:
    """Ray Train is measured as V1. V2 has the same names, so that a wrong setting would not be noticed."""
    from ray.train.torch import TorchTrainer

    if TorchTrainer.__module__ != "ray.train.torch.torch_trainer":
        raise RuntimeError(f"{TorchTrainer.__module__} is not Ray Train V1: set RAY_TRAIN_V2_ENABLED=0")
