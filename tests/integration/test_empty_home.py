"""Processes that begin at the same time in a home where nothing is yet: each finds it, or makes it, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.longest import LONGEST_S

# Without Ray, which each process would start for itself: what they share is the two databases.
SCRIPT = """
import sys
from prefect import flow
from trainlib._registry.client import connect
from trainlib._registry.store import current_store
from trainlib.flows import _embedded as embedded

@flow(persist_result=False)
def nothing():
    return 7

embedded.start()
connect(current_store()).create_experiment(f"of {sys.argv[1]}")
embedded.wait()
assert nothing() == 7
print("done")
"""


def test_processes_that_begin_at_once_in_an_empty_home_all_succeed(tmp_path):
    home = tmp_path / "home"
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("PREFECT_API_URL", "RAY_ADDRESS")},
        "TRAINLIB_HOME": str(home),
        "PREFECT_HOME": str(home / "prefect"),
    }
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    started = [
        subprocess.Popen(
            [sys.executable, str(script), str(number)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(3)
    ]
    outputs = [process.communicate(timeout=LONGEST_S)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], "\n".join(outputs)
    assert all("done" in output.splitlines() for output in outputs), outputs
    log = Path(home / "logs" / "prefect-server.log").read_text()
    assert "Traceback" not in log, log
