"""A test that fails says which process said what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

CASES = """
from pathlib import Path
from tests import process_logs

def say(text):
    with open("server.log", "a") as log:
        log.write(text)

process_logs.follow("the server", Path("server.log"))
process_logs.follow("one that is silent", Path("never-written.log"))

def test_that_passes():
    say("said in a test that passes\\n")

def test_that_fails():
    say(":task_name:read\\n" + "".join(f"line {number}\\n" for number in range(50)))
    assert False
"""


def test_a_failed_test_shows_what_each_process_has_said_since_it_began(tmp_path):
    (tmp_path / "test_cases.py").write_text(CASES)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.process_logs", "-p", "no:cacheprovider", "test_cases.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    _, _, shown = done.stdout.partition("- said by the server -")
    assert "(10 lines before, in server.log)\nline 10\n" in shown
    assert "line 49" in shown
    assert "task_name" not in shown
    assert "said in a test that passes" not in done.stdout
    assert "one that is silent" not in done.stdout
