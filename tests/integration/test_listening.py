"""Where the processes of a training listen, and what they send: nobody outside of the machine hears of them."""

from __future__ import annotations

import os
import socket

import psutil
import pytest
import ray
from prefect.client.orchestration import get_client
from ray._common.usage.usage_lib import usage_stats_enabled

from tests.integration import backends
from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, session
from trainlib.lightgbm import LightGBMTrainer, get_network_params
from trainlib.xgboost import XGBoostTrainer

# TensorFlow's server cannot be told on which address to listen.
ON_ALL_ADDRESSES = {"tensorflow": 1}


def trains(config: dict) -> list[str]:
    """Averages once, and returns on which addresses this process listens then."""
    mean = backends.collective(config["backend"])
    assert mean(float(session.get_world_rank())) == 0.5
    return listening(psutil.Process())


def listening(process: psutil.Process) -> list[str]:
    found = process.net_connections("tcp")
    return [each.laddr.ip.removeprefix("::ffff:") for each in found if each.status == psutil.CONN_LISTEN]


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_workers_listen_on_loopback_only(backend):
    trainer = backends.trainer(backend, trains)
    for addresses in trainer.fit().returned:
        beyond = [address for address in addresses if address not in ("127.0.0.1", "::1")]
        assert len(beyond) == ON_ALL_ADDRESSES.get(backend, 0), addresses


def trains_trees(config: dict) -> list[tuple[str, bool]]:
    """Trains one round, and returns on which addresses this process listens then, and whether it hears others than loopback's own."""
    import numpy as np

    rows, labels = np.eye(40), np.arange(40) % 2
    if config["backend"] == "xgboost":
        import xgboost

        xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(rows, labels), num_boost_round=1)
    else:
        import lightgbm

        params = {"objective": "binary", "verbosity": -1, **get_network_params()}
        config["kept"] = lightgbm.train(params, lightgbm.Dataset(rows, labels, params=params), num_boost_round=1)
    return [(address, is_heard(port)) for address, port in listening_ports(psutil.Process())]


def listening_ports(process: psutil.Process) -> list[tuple[str, int]]:
    found = process.net_connections("tcp")
    return [(each.laddr.ip, each.laddr.port) for each in found if each.status == psutil.CONN_LISTEN]


def is_heard(port: int) -> bool:
    """Whether what is sent to another address than that of the workers reaches a socket that listens."""
    try:
        socket.create_connection(("127.0.0.2", port), timeout=0.5).close()
        return True
    except OSError:
        return False


def test_workers_that_train_trees_listen_on_loopback_only():
    """XGBoost binds a socket to all addresses, but it hears loopback only. LightGBM listens while its workers join, and then no more."""
    for kind, backend in ((XGBoostTrainer, "xgboost"), (LightGBMTrainer, "lightgbm")):
        trainer = kind(
            trains_trees, train_loop_config={"backend": backend}, scaling_config=ScalingConfig(num_workers=2)
        )
        for sockets in trainer.fit().returned:
            beyond = [each for each in sockets if each[0] not in ("127.0.0.1", "::1", "::ffff:127.0.0.1")]
            assert beyond == ([("0.0.0.0", False)] if backend == "xgboost" else [])


def test_what_is_started_around_a_training_listens_on_loopback_only():
    """Ray's processes, Prefect's server, and this process."""
    here = psutil.Process(os.getpid())
    beyond = {}
    for process in (here, *here.children(recursive=True)):
        try:
            name, addresses = process.name(), listening(process)
        except psutil.NoSuchProcess:
            continue
        beyond[f"{name} {process.pid}"] = [each for each in addresses if each not in ("127.0.0.1", "::1")]
    assert any(name.startswith("gcs_server") for name in beyond), beyond
    assert not any(beyond.values()), beyond


def test_nobody_else_can_answer_on_the_ports_of_rays_agents_that_do_not_run():
    """Ray's other processes call there, and say their token to whoever answers. A port that is only bound could be taken over."""
    told = ray._private.worker._global_node._ray_params
    for port in (told.metrics_agent_port, told.metrics_export_port, told.dashboard_agent_listen_port):
        with socket.socket() as strangers:
            strangers.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with pytest.raises(OSError, match="Address already in use"):
                strangers.bind(("127.0.0.1", port))


def test_usage_statistics_of_ray_prefect_and_mlflow_are_off():
    """In whatever trainlib starts. The environment of this process says nothing about them."""
    result = DataParallelTrainer(usage_statistics, run_config=RunConfig(verbose=0)).fit()
    assert result.returned == [{"Ray": False, "MLflow": False}]
    assert not usage_stats_enabled()
    with get_client(sync_client=True) as client:
        settings = client._client.get("/admin/settings").json()
    assert settings["server"]["analytics_enabled"] is False


def usage_statistics(config: dict) -> dict[str, bool]:
    from mlflow.telemetry import get_telemetry_client

    return {"Ray": usage_stats_enabled(), "MLflow": get_telemetry_client() is not None}
