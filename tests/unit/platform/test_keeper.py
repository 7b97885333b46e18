"""Nothing that a service has started outlives whoever started the service."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import psutil
import pytest

from trainlib._platform import keeper

# A service with a child that ignores SIGTERM and a grandchild whose parent is gone, in a session of its own.
SERVICE = """
import os, signal, subprocess, sys, time
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
lost = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)"
subprocess.run([sys.executable, "-c", lost], check=True)
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def kept(monkeypatch) -> tuple[subprocess.Popen, list[psutil.Process]]:
    """A keeper that gives its service half a second, and everything below it, once all of it is there."""
    start = f"import sys; sys.path.insert(0, {str(keeper.__file__).rpartition('/')[0]!r}); import keeper; keeper.END_S = 0.5; "
    process = subprocess.Popen(
        [sys.executable, "-c", f"{start}sys.exit(keeper.main(sys.argv[1:]))", sys.executable, "-c", SERVICE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    service = int(process.stdout.readline())
    assert process.stderr.readline() == "ready\n"
    below = psutil.Process(process.pid).children(recursive=True)
    assert service in [each.pid for each in below]
    assert len(below) == 3, "the service, its child, and the grandchild whose parent is gone"
    yield process, below
    process.kill()
    for each in below:
        if each.is_running():
            each.kill()


def test_all_descendants_end_when_the_parent_is_gone(kept):
    process, below = kept
    process.stdin.close()
    assert process.wait(10) == 128 + signal.SIGTERM
    assert [each for each in below if each.is_running()] == []


def test_all_descendants_end_on_sigterm(kept):
    process, below = kept
    process.terminate()
    process.wait(10)
    assert [each for each in below if each.is_running()] == []


def test_what_a_service_leaves_ends_with_it(kept):
    process, below = kept
    service = next(each for each in below if each.ppid() == process.pid and "stubborn" in " ".join(each.cmdline()))
    service.kill()
    assert process.wait(10) == 128 + signal.SIGKILL
    assert [each for each in below if each.is_running()] == []


def test_a_service_ends_when_its_keeper_is_killed(kept):
    process, below = kept
    service = next(each for each in below if each.ppid() == process.pid and "stubborn" in " ".join(each.cmdline()))
    process.kill()
    deadline = time.monotonic() + 10
    while service.is_running() and service.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.02)
