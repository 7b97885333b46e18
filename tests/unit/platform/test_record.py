"""A platform that is up is found by other processes, and one that has ended is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainlib._platform import record
from trainlib._platform.record import Platform
from trainlib._process import Process


@pytest.fixture
def platform(tmp_path, monkeypatch) -> Platform:
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    return Platform(str(Process.this()), "http://127.0.0.1:4200", "http://127.0.0.1:5000", "127.0.0.1:6379")


def test_a_platform_is_found_while_its_process_lives(platform):
    assert record.running() is None
    record.write(platform)
    assert record.running() == platform
    record.write(replace(platform, process=str(replace(Process.this(), started="1"))))
    assert record.running() is None


def test_a_platform_that_was_ended_is_not_found(platform):
    record.write(platform)
    record.forget()
    assert record.running() is None
    record.forget()
