"""What stands in for an agent of Ray's ends with its raylet, also with one that was gone before it began."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.longest import LONGEST_S
from trainlib._execution import no_dashboard_agent


def started_by(raylet: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RAY_RAYLET_PID": str(raylet)}
    return subprocess.Popen([sys.executable, "-S", "-E", no_dashboard_agent.__file__], env=environment)


def test_it_ends_with_its_raylet():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    orphan, living = started_by(gone.pid), started_by(os.getpid())
    try:
        assert orphan.wait(LONGEST_S) == 0
        with pytest.raises(subprocess.TimeoutExpired):
            living.wait(timeout=2)  # it looks twice a second
    finally:
        living.kill()
        living.wait()
