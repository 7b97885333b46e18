"""Killing a rank from outside, once its training has a checkpoint."""

from __future__ import annotations

import os
import signal
import threading
import time

from bench.scripts.side import folder, mark, wait_for

# The checkpoint has been reported; give it time to be saved, so that both sides resume from it.
SAVED_S = 3.0


def kill_rank_1() -> threading.Thread:
    """Start a thread that kills rank 1, which writes its process id into the file ``pid``."""

    def kill() -> None:
        wait_for(folder() / "pid")
        time.sleep(SAVED_S)
        pid = int((folder() / "pid").read_text())
        mark(folder() / "killed")
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def step_until_killed() -> None:
    """Collectives, as in any training: the surviving rank is in the middle of one when its peer dies."""
    import torch
    import torch.distributed as dist

    gradient = torch.ones(1000)
    while True:
        dist.all_reduce(gradient)
        time.sleep(0.01)
