"""Whether a process still lives, also when another one has its pid."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from trainlib._process import Process


def test_a_process_is_known_again_by_its_text():
    this = Process.this()
    assert Process.parse(str(this)) == this
    assert Process.parse("fe80::1:42:1000") == Process("fe80::1", 42, "1000"), "a host may have colons in its name"


def test_a_process_that_runs_is_not_gone():
    assert not Process.this().is_gone


def test_a_process_that_has_ended_is_gone():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        known = Process.of(process.pid)
        assert not known.is_gone
        process.communicate(b"\n")
    assert known.is_gone
    assert Process.of(process.pid).is_gone


def test_another_process_with_the_same_pid_does_not_count():
    assert replace(Process.this(), started="1").is_gone


def test_of_another_machine_nothing_is_known():
    assert not Process("another-host", 2**22 + 1, "1").is_gone
