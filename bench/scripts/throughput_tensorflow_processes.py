"""Samples per second of 2-worker MultiWorkerMirroredStrategy in two processes that find each other by TF_CONFIG.

This file starts itself a second time as the other process.
"""

import json
import os
import socket
import subprocess
import sys

from bench.scripts.network import train_keras
from bench.scripts.side import finish


def tf_config(workers: list[str], rank: int) -> str:
    """The variable TF_CONFIG for one process."""
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}})


if "TF_CONFIG" in os.environ:
    train_keras(lambda metrics: None)
else:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in (first, second)]
    other = subprocess.Popen(
        [sys.executable, "-m", "bench.scripts.throughput_tensorflow_processes", sys.argv[1]],
        env={**os.environ, "TF_CONFIG": tf_config(addresses, 1)},
    )
    os.environ["TF_CONFIG"] = tf_config(addresses, 0)
    speed = train_keras(lambda metrics: None)
    other.wait()
    finish(samples_per_s=speed)
