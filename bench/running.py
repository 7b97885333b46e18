"""Runs each side in a fresh process, with its own folder and databases that already exist."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measurements import START, Side
from bench.scripts.side import RESULT, TURN

ROOT = Path(__file__).resolve().parent.parent
LONGEST_S = 300.0
_LINES_OF_LOG = 30

# The measurements must not use the caller's servers or cluster.
_SERVERS = ("RAY_ADDRESS", "PREFECT_API_URL", "PREFECT_PROFILE", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME")
# Installed packages have their bytecode, and so has a user's trainlib. In this checkout, the first run writes it.
_NOT_PASSED_ON = (*_SERVERS, "PYTHONDONTWRITEBYTECODE")


class SideFailedError(RuntimeError):
    """A side ended without a result."""


class Bench:
    """A temporary home for trainlib and Prefect, and the sides that run in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = folder / "home"
        self._home.mkdir()
        self._runs = 0

    def warm_up(self) -> None:
        """Create the databases, and fill the page cache with both sides' files."""
        for side in START:
            self.run(side)

    def run(self, side: Side, turn: int = 1) -> dict[str, float]:
        """Run a side once. Returns its numbers.

        Args:
            side: The side.
            turn: How many runs of it there are with this one. Scripts whose outcome is a matter of luck take it as their seed.

        Raises:
            SideFailedError: it failed. The message has its last output.
        """
        self._runs += 1
        folder = self._folder / f"{self._runs:03d}-{side.script}"
        folder.mkdir()
        log = folder / "log"
        launcher = side.launcher or ("-m",)
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [sys.executable, *launcher, f"bench.scripts.{side.script}", str(folder)],
                cwd=ROOT,
                env={**self._environment(side), TURN: str(turn)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                status = process.wait(LONGEST_S)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise SideFailedError(f"{side.script} did not end within {LONGEST_S:g} s:\n{_tail(log)}") from None
                raise
        if status or not (folder / RESULT).exists():
            raise SideFailedError(f"{side.script} ended with status {status}:\n{_tail(log)}")
        numbers = json.loads((folder / RESULT).read_text())
        shutil.rmtree(folder)  # the checkpoint measurement alone leaves gigabytes
        return numbers

    def _environment(self, side: Side) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON},
            "TRAINLIB_HOME": str(self._home),
            "PREFECT_HOME": str(self._home / "prefect"),
            "PYTHONPATH": str(ROOT),
            **side.environment,
        }


@contextmanager
def bench() -> Iterator[Bench]:
    """A bench in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="trainlib-bench-"))
    try:
        yield Bench(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LINES_OF_LOG:])
