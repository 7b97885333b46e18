"""The same code on a Prefect server, an MLflow server and a Ray cluster of two nodes, each in processes of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID

import pytest
from mlflow import MlflowClient

from tests import process_logs

CLUSTER = """
import sys
from ray.cluster_utils import Cluster

# Nobody looks at its dashboard or its autoscaler, and each takes seconds to start.
head = {"num_cpus": 2, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
cluster = Cluster(initialize_head=True, head_node_args=head)
node = cluster.add_node(num_cpus=2)
print(cluster.address, flush=True)
for command in sys.stdin:
    new = cluster.add_node(num_cpus=2)
    cluster.remove_node(node, allow_graceful=False)
    node = new
    print("swapped", flush=True)
cluster.shutdown()
"""


@dataclass
class Servers:
    prefect: str
    mlflow: str
    ray: str
    commands: IO[str]
    answers: IO[str]

    def environment(self) -> dict[str, str]:
        return {"PREFECT_API_URL": f"{self.prefect}/api", "MLFLOW_TRACKING_URI": self.mlflow, "RAY_ADDRESS": self.ray}

    def swap_node(self) -> None:
        """Take the second node away, and put another one in its place."""
        self.commands.write("swap\n")
        self.commands.flush()
        assert self.answers.readline().strip() == "swapped"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)


@pytest.fixture(scope="module")
def servers(tmp_path_factory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("servers")
    prefect_port, mlflow_port = free_port(), free_port()
    environment = {
        **os.environ,
        "PREFECT_HOME": str(folder / "prefect"),
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # seven processes that would only take time to start
    }
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    started: list[subprocess.Popen] = []

    def start(name: str, *command: str, **options) -> subprocess.Popen:
        process_logs.follow(f"the {name} server of the servers' tests", folder / f"{name}.log")
        with open(folder / f"{name}.log", "wb") as log:
            options = {"stdout": log, **options}
            process = subprocess.Popen(
                [sys.executable, *command], stderr=log, env=environment, cwd=folder, start_new_session=True, **options
            )
        started.append(process)
        return process

    try:
        cluster = start("ray", "-c", CLUSTER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        prefect = start(
            "prefect", "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(prefect_port), "--no-ui"
        )
        mlflow = start(
            "mlflow",
            *("-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(mlflow_port), "--workers", "1"),
            *(
                "--backend-store-uri",
                f"sqlite:///{folder}/mlflow.db",
                "--artifacts-destination",
                str(folder / "artifacts"),
            ),
        )
        wait_for(f"http://127.0.0.1:{prefect_port}/api/health", prefect, folder / "prefect.log")
        wait_for(f"http://127.0.0.1:{mlflow_port}/health", mlflow, folder / "mlflow.log")
        assert cluster.stdout is not None
        assert cluster.stdin is not None
        address = cluster.stdout.readline().strip()
        yield Servers(
            f"http://127.0.0.1:{prefect_port}",
            f"http://127.0.0.1:{mlflow_port}",
            address,
            cluster.stdin,
            cluster.stdout,
        )
    finally:
        for process in started:
            if process.stdin is not None:
                process.stdin.close()
            else:
                process.terminate()
        for process in started:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


SCRIPT = """
    import json, os, signal, sys, time
    from pathlib import Path
    import torch
    from trainlib import Checkpoint, CheckpointConfig, FailureConfig, RunConfig, ScalingConfig, session
    from trainlib.torch import TorchTrainer

    def train_func(config):
        import torch.distributed as dist

        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        mark = Path(config["mark"])
        for epoch in range(start, 6):
            total = torch.ones(1)
            dist.all_reduce(total)
            session.report(
                {"epoch": epoch, "start": start, "total": total}, checkpoint=Checkpoint.from_dict({"epoch": epoch})
            )
            if epoch == 3 and not mark.exists():
                dist.barrier()
                time.sleep(2)
                if config["way"] == "kill" and session.get_world_rank() == 1:
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                if session.get_world_rank() == 0:
                    Path(config["waiting"]).touch()
                dist.barrier()
                time.sleep(60)
        return [session.get_world_rank(), session.get_local_rank(), session.get_local_world_size(), session.get_node_rank()]

    way, mark, waiting, name = sys.argv[1:]
    result = TorchTrainer(
        train_func,
        train_loop_config={"way": way, "mark": mark, "waiting": waiting},
        scaling_config=ScalingConfig(num_workers=4),
        run_config=RunConfig(
            name=name,
            checkpoint_config=CheckpointConfig(num_to_keep=2),
            failure_config=FailureConfig(max_failures=int(way == "kill"), max_preemptions=int(way == "swap")),
        ),
    ).fit()
    print(json.dumps({
        "run_id": result.run_id, "flow_run_id": result.flow_run_id, "url": result.run_url, "attempts": result.attempts,
        "places": result.returned, "start": result.metrics["start"], "total": result.metrics["total"],
        "checkpoint": result.checkpoint.get_internal_representation(), "epoch": result.checkpoint.to_dict()["epoch"],
    }))
"""


@pytest.fixture
def outcome_of(servers: Servers, driver, tmp_path) -> Callable:
    def run(way: str) -> tuple[dict, object]:
        mark, waiting = tmp_path / "mark", tmp_path / "waiting"
        process = driver(
            SCRIPT,
            way,
            str(mark),
            str(waiting),
            f"servers-{way}",
            own_server=True,
            own_ray=True,
            **servers.environment(),
        )
        if way == "swap":
            process.wait_for(waiting.exists)
            mark.touch()
            servers.swap_node()
        assert process.wait(timeout=180) == 0, process.output
        return process.last_json(), MlflowClient(servers.mlflow).get_run(process.last_json()["run_id"])

    return run


def check(outcome: dict, servers: Servers) -> None:
    assert outcome["attempts"] == 2
    assert outcome["start"] == 4, "the retry resumes from a checkpoint that went through the tracking server"
    assert outcome["total"] == 4.0, "all four ranks took part"
    assert outcome["places"] == [[0, 0, 2, 0], [1, 1, 2, 0], [2, 0, 2, 1], [3, 1, 2, 1]], "ranks are ordered by node"
    assert outcome["epoch"] == 5
    assert outcome["checkpoint"][0] == "uri"
    assert outcome["checkpoint"][1].startswith("mlflow-artifacts:/")
    assert outcome["url"].startswith(servers.mlflow)
    points = MlflowClient(servers.mlflow).get_metric_history(outcome["run_id"], "epoch")
    assert [(point.step, point.value) for point in points] == [(epoch + 1, float(epoch)) for epoch in range(6)]


def test_a_killed_worker_on_servers(servers, outcome_of, tmp_path):
    outcome, run = outcome_of("kill")
    check(outcome, servers)
    assert run.info.status == "FINISHED"
    assert '"outcome": "worker"' in run.data.tags["trainlib.attempt.001"]
    assert run.data.tags["prefect.flow_run_url"] == f"{servers.prefect}/runs/flow-run/{outcome['flow_run_id']}"
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: f"{servers.prefect}/api"}), get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID(outcome["flow_run_id"])).state
    assert state is not None
    assert state.type.value == "COMPLETED"
    models = MlflowClient(servers.mlflow).search_logged_models(
        [run.info.experiment_id], filter_string=f"source_run_id = '{run.info.run_id}'"
    )
    assert sorted(model.name for model in models) == ["checkpoint_000004", "checkpoint_000005"]
    assert list(Path("/tmp").glob(f"trainlib-{run.info.run_id}")) == [], "no staged file is left"


def test_a_lost_node_is_a_preemption_with_its_own_budget(servers, outcome_of):
    outcome, run = outcome_of("swap")
    check(outcome, servers)
    assert '"outcome": "preempted"' in run.data.tags["trainlib.attempt.001"]
