"""XGBoost listens on all addresses: its own sockets hear only the worker's, on whatever address that is, and no others are touched."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

from tests.addresses import address_for_other_hosts
from tests.longest import LONGEST_S
from trainlib._execution.network import listening_sockets, narrow_listeners

ON_ALL = ("0.0.0.0", 0)


def is_heard(port: int, address: str) -> bool:
    try:
        socket.create_connection((address, port), timeout=0.5).close()
        return True
    except TimeoutError:
        return False


def test_sockets_that_listened_before_are_left_alone():
    with socket.create_server(ON_ALL) as rays, socket.create_server(("127.0.0.2", 0)) as here:
        before = listening_sockets()
        with socket.create_server(ON_ALL) as theirs:
            narrow_listeners("127.0.0.1", but=before)
            ports = [each.getsockname()[1] for each in (rays, here, theirs)]
            assert [is_heard(port, "127.0.0.2") for port in ports] == [True, True, False]
            assert is_heard(ports[-1], "127.0.0.1")


def test_looking_at_sockets_leaves_no_file_open(tmp_path):
    with open(tmp_path / "file", "w"), socket.create_server(ON_ALL):
        before = len(os.listdir("/proc/self/fd"))
        narrow_listeners("127.0.0.1", but=listening_sockets())
        assert len(os.listdir("/proc/self/fd")) == before


RANK = """
import json, sys
import numpy as np
import xgboost
from trainlib.xgboost import _config

rank, joining, address = json.loads(sys.argv[1])
_config._tell({**joining, "dmlc_task_id": f"{rank:08d}", "dmlc_timeout": 60}, address)
rows = np.random.default_rng(rank).normal(size=(100, 3))
with _config.communicator():
    matrix = xgboost.DMatrix(rows, rows[:, 0] > 0)
    model = xgboost.train({"objective": "binary:logistic", "max_depth": 2}, matrix, num_boost_round=2)
print("".join(model.get_dump()))
"""


def test_workers_of_several_hosts_train_one_model_and_leave_each_other():
    """There, each has the address of its host. XGBoost still calls itself through loopback at its end."""
    from trainlib.xgboost import _config

    address = address_for_other_hosts()
    joining = _config._open_tracker(address, 2, 60)
    commands = [[sys.executable, "-c", RANK, json.dumps([rank, joining, address])] for rank in range(2)]
    ranks = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    try:
        models = [rank.communicate(timeout=LONGEST_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
        _config._forget()
    assert [rank.returncode for rank in ranks] == [0, 0]
    assert models[0] == models[1] != ""
