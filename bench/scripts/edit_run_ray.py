"""The edit-run loop under Ray Train V1: the second script in a row that joins a running `ray start --head`."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.scripts.edit_run import finish_with_second_run, free_port
from bench.scripts.side import until
from trainlib._execution.network import LOOPBACK


def answers(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


port = free_port()
ray = str(Path(sys.executable).with_name("ray"))
# A folder of its own, or else every other program here would try to join this Ray after its end.
own_folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)
environment = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": own_folder.name}
head = subprocess.Popen(
    [ray, "start", "--head", "--block", f"--port={port}", f"--node-ip-address={LOOPBACK}", "--include-dashboard=false"],
    env={**os.environ, **environment},
)
try:
    until(lambda: answers(port))
    finish_with_second_run("first_line_ray", {**environment, "RAY_ADDRESS": f"{LOOPBACK}:{port}"})
finally:
    head.terminate()
    head.wait()
    own_folder.cleanup()
