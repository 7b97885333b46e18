"""Tests that need the machine for themselves: ``@pytest.mark.alone``.

Two files of tests run at a time. While a test runs that checks how quickly something happens, the other file waits. Several such
tests in a row have the machine until the last of them is over: between any two, the other file would begin a test that the
second one would have to wait for.

It is a pytest plugin, which ``tests/conftest.py`` loads.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

# What pytest-xdist calls this run, in all its processes.
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")
_LOCK = Path(tempfile.gettempdir()) / f"trainlib-tests-{_RUN}.lock"
# Whoever waits for the machine stands in this door: otherwise the other file could begin one test after the other meanwhile.
_DOOR = _LOCK.with_suffix(".door")

_machine: IO[str] | None = None
"""The lock, for as long as tests that run alone follow each other."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "alone: checks how quickly something happens, so nothing else is tested meanwhile"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before the time-out of a test begins
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[Any]:
    global _machine
    if _RUN is None:
        return (yield)
    lock = _machine or _locked(fcntl.LOCK_EX if _is_alone(item) else fcntl.LOCK_SH)
    try:
        return (yield)
    finally:
        _machine = lock if _is_alone(item) and _is_alone(nextitem) else None
        if _machine is None:
            lock.close()


def _is_alone(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("alone") is not None


def _locked(how: int) -> IO[str]:
    lock = open(_LOCK, "w")  # noqa: SIM115 (it is held until the tests are over)
    with open(_DOOR, "w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(lock, how)
    return lock


def pytest_sessionfinish() -> None:
    _LOCK.unlink(missing_ok=True)
    _DOOR.unlink(missing_ok=True)
