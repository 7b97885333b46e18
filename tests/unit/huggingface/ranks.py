"""Ranks of a process group on this machine, as workers have them, without Ray."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.longest import LONGEST_S

__all__ = ["in_ranks"]


def in_ranks(function: Callable[..., Any], *arguments: Any, ranks: int = 2) -> list[Any]:
    """What a function of a test's module returns in each of some processes, which have folders of their own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "called").write_bytes(pickle.dumps((function, arguments)))
        command = [sys.executable, "-m", __name__]
        started = [subprocess.Popen([*command, str(rank), str(ranks), name]) for rank in range(ranks)]
        deadline = time.monotonic() + LONGEST_S
        try:
            while any(each.poll() is None for each in started):
                assert not any(each.poll() for each in started), "a rank has failed, for which the others would wait"
                assert time.monotonic() < deadline, f"waited {LONGEST_S} s"
                time.sleep(0.05)
        finally:
            for each in started:
                each.kill()
                each.wait()
        assert [each.returncode for each in started] == [0] * ranks
        return [pickle.loads((folder / f"returned_{rank}").read_bytes()) for rank in range(ranks)]


def _run(rank: int, ranks: int, folder: Path) -> None:
    import torch.distributed as dist

    function, arguments = pickle.loads((folder / "called").read_bytes())
    places = {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks}
    os.environ.update({name: str(value) for name, value in places.items()})
    os.environ.update({"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"})
    own = folder / f"rank_{rank}"
    own.mkdir()
    os.chdir(own)
    store = dist.FileStore(str(folder / "store"), ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=LONGEST_S))
    try:
        (folder / f"returned_{rank}").write_bytes(pickle.dumps(function(*arguments)))
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    _run(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
