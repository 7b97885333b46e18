"""Tests that need the machine for themselves: ``@pytest.mark.alone``.

Several files of tests run at a time. While a test runs that checks how quickly something happens, the others wait. Several such
tests in a row have the machine until the last of them is over: between any two, another file would begin a test that the
second one would have to wait for.

It is a pytest plugin, which ``tests/conftest.py`` loads.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

# Whether other processes of pytest-xdist run tests, too.
_HAS_COMPANY = "PYTEST_XDIST_WORKER" in os.environ

_machine: IO[str] | None = None
"""The lock, for as long as tests that run alone follow each other."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "alone: checks how quickly something happens, so nothing else is tested meanwhile"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before the time-out of a test begins
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[Any]:
    global _machine
    if not _HAS_COMPANY:
        return (yield)
    lock = _machine or _locked(_folder_of_run(item.config), fcntl.LOCK_EX if _is_alone(item) else fcntl.LOCK_SH)
    try:
        return (yield)
    finally:
        _machine = lock if _is_alone(item) and _is_alone(nextitem) else None
        if _machine is None:
            lock.close()


def _is_alone(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("alone") is not None


def _folder_of_run(config: pytest.Config) -> Path:
    """The temporary folder that all processes of this run share. Each has one of its own in it."""
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return factory.getbasetemp().parent


def _locked(folder: Path, how: int) -> IO[str]:
    lock = open(folder / "machine.lock", "w")  # noqa: SIM115 (it is held until the tests are over)
    # Whoever waits for the machine stands in the door: otherwise others could begin one test after the other meanwhile.
    with open(folder / "machine.door", "w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(lock, how)
    return lock
