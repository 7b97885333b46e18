"""No unit test leaves a process running: a later one would fail for it, since a process that has children cannot be reset."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trainlib._execution.reset.process_state import _children


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Name the test that has left a process, instead of a later one."""
    before = set(_children())
    yield
    assert set(_children()) - before == set(), "this test has left processes"
