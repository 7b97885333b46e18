"""What the processes behind a test have said: a test that fails shows it, under the name of each process.

It is a pytest plugin, which ``tests/conftest.py`` loads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

LINES = 40
"""How much of the end of a log is shown."""

Logs = Callable[[], Iterable[tuple[str, Path]]]
"""Gives the name of each process, and the file that it writes its output to."""

# Ray marks in a worker's log whose lines follow; the headings here say it.
_MARKS = (":job_id:", ":actor_name:", ":task_name:")

_sources: list[Logs] = []
_sizes: dict[Path, int] = {}


def follow(name: str, log: Path) -> None:
    """Show what a process writes to a file from now on, when a test fails."""
    _sources.append(lambda: [(name, log)])


def follow_all(logs: Logs) -> None:
    """The same for processes that come and go."""
    _sources.append(logs)


def said() -> Iterator[tuple[str, str]]:
    """The name of each process that has said something since the test began, and the end of that."""
    for name, log in _found():
        text = _read(log, _sizes.get(log, 0))
        lines = [line for line in text.splitlines() if not line.startswith(_MARKS)]
        if lines:
            left_out = [f"({len(lines) - LINES} lines before, in {log})"] if len(lines) > LINES else []
            yield name, "\n".join([*left_out, *lines[-LINES:]])


def _found() -> Iterator[tuple[str, Path]]:
    for source in _sources:
        yield from source()


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _read(log: Path, start: int) -> str:
    if _size(log) <= start:
        return ""
    with open(log, "rb") as file:
        file.seek(start)
        return file.read().decode(errors="replace").strip()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _sizes.clear()
    _sizes.update({log: _size(log) for _, log in _found()})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed:
        report.sections += [(f"said by {name}", text) for name, text in said()]
    return report
