"""From starting ``python train.py`` to the first line of its training function, while everything that it joins is up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

from bench.scripts.side import finish, folder, marked


def finish_with_second_run(script: str, environment: dict[str, str]) -> None:
    """Run a script twice in a row, and write how long the second one took."""
    seconds = [_seconds_to_first_line(script, environment, str(run)) for run in (1, 2)]
    finish(first_run_s=seconds[0], second_run_s=seconds[1])


def _seconds_to_first_line(script: str, environment: dict[str, str], run: str) -> float:
    mark = folder() / run
    started = time.time()
    subprocess.run(
        [sys.executable, "-m", f"bench.scripts.{script}", str(folder()), str(mark)],
        env={**os.environ, **environment},
        check=True,
    )
    return marked(mark) - started


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
