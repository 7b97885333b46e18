"""A process that leaves at once loses nothing that it has written."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import atexit, gc, sys
from trainlib._execution import leaving

class Log:
    def __init__(self, file):
        self.file = open(file, "w")
        self.itself = self  # only a search for cycles finds that nobody needs it any more

log = Log(sys.argv[1])
log.file.write("to the last line")
atexit.register(log.file.write, ", and beyond")
dropped = Log(sys.argv[1] + "-dropped")
dropped.file.write("garbage")
gc.collect(1)  # so that it is old when it becomes garbage
del dropped
closed = open(sys.argv[1] + "-closed", "w")
closed.close()
closed.itself = closed
leaving._session = "of a Ray that is gone"
"""


def test_a_file_that_nobody_has_closed_is_complete(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "log")], capture_output=True, text=True, check=True
    )
    assert (tmp_path / "log").read_text() == "to the last line, and beyond"
    assert (tmp_path / "log-dropped").read_text() == "garbage"
    assert done.stderr == ""
