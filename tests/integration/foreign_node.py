"""A node on a machine of its own, as far as its processes can tell: another host name, another folder, another disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import ray

import trainlib
from tests import process_logs
from trainlib._execution import cluster

HOST = "elsewhere"
DESK = "desk"
"""What only this node has: a worker that asks for one is placed there."""

_NODE = """
import sys
from ray._private.node import Node
from ray._private.parameter import RayParams

settings = RayParams(
    gcs_address=sys.argv[1],
    num_cpus=4,
    num_gpus=0,
    resources={sys.argv[2]: 4},
    object_store_memory=150 * 1024**2,
    min_worker_port=0,
    max_worker_port=0,
    node_manager_port=0,
    dashboard_agent_listen_port=None,
    include_log_monitor=False,
)
node = Node(settings, head=False, shutdown_at_exit=True, spawn_reaper=False)
print("up", flush=True)
sys.stdin.read()
node.kill_all_processes(check_alive=False, allow_graceful=True, wait=True)
"""
# An empty disk is put over each folder that the node is not to see. Only its own processes see it there.
_HIDE = (
    'hostname "$0" && while [ "$1" != -- ]; do mount -t tmpfs none "$1" || exit 1; shift; done && shift && exec "$@"'
)


def copy_of_trainlib(folder: Path) -> Path:
    """The package trainlib, copied into a folder that may be on the import path of another machine."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(Path(trainlib.__file__).parent, folder / "trainlib", ignore=ignored))


@contextmanager
def foreign_node(folder: Path, hidden: Sequence[Path]) -> Iterator[None]:
    """A node that joins the session's Ray for as long as the block runs. It has a trainlib of its own.

    Args:
        folder: Where its processes start.
        hidden: Folders of this machine that they do not see.
    """
    cluster.connect()
    own = Path(trainlib.__file__).parent
    copy_of_trainlib(folder / "site-packages")
    as_root = ["unshare", "--mount", "--uts"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    if subprocess.run([*as_root, "hostname", HOST], capture_output=True).returncode != 0:
        pytest.fail("unshare cannot start processes that see other folders: run as root, or allow user namespaces")
    command = [sys.executable, "-c", _NODE, ray.get_runtime_context().gcs_address, DESK]
    log = folder / "node.log"
    process_logs.follow("the node on another machine", log)
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            [*as_root, "sh", "-c", _HIDE, HOST, *map(str, [*hidden, own]), "--", *command],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder / "site-packages")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "up", log.read_text()
        yield
    finally:
        process.stdin.close()
        process.wait(30)
