"""The same code on a Prefect server, an MLflow server and a Ray cluster of two nodes, each in processes of its own."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID

import pandas as pd
import pytest
from mlflow import MlflowClient, pyfunc
from mlflow.entities import Run
from sklearn.linear_model import LinearRegression

from tests import process_logs
from tests.integration.conftest import drivers
from tests.longest import LONGEST_S
from tests.saved_checkpoints import saved
from trainlib import _storage as storage
from trainlib._serving.files import put_model_files
from trainlib.sklearn import SklearnCheckpoint

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


def copy_database(source: Path, target: Path) -> None:
    """Prefect's database of the session, if there is one already: to make another takes Prefect some ten seconds."""
    target.mkdir()
    if (source / "prefect.db").exists():
        with (
            closing(sqlite3.connect(source / "prefect.db")) as before,
            closing(sqlite3.connect(target / "prefect.db")) as after,
        ):
            before.backup(after)


def wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + LONGEST_S
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
        "RAY_health_check_period_ms": "1000",  # Ray gives a lost node up after five seconds, and not after fifteen
    }
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
        environment.pop(name, None)
    copy_database(Path(os.environ["PREFECT_HOME"]), folder / "prefect")
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

    def place():
        names = ["RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "WORLD_SIZE"]
        context = session.get_context()
        own = [context.get_world_rank(), context.get_local_rank(), context.get_local_world_size(), context.get_node_rank()]
        return {"own": own, "torch": [int(os.environ[name]) for name in names]}

    def train_func(config):
        import torch.distributed as dist

        attempt, folder = session.get_context().get_attempt(), Path(config["folder"])
        (folder / f"place-{attempt}-{session.get_world_rank()}.json").write_text(json.dumps(place()))
        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        for epoch in range(start, 6):
            total = torch.ones(1)
            dist.all_reduce(total)
            session.report(
                {"epoch": epoch, "start": start, "total": total}, checkpoint=Checkpoint.from_dict({"epoch": epoch})
            )
            if (attempt, epoch) in ((1, 3), (2, 4)):
                dist.barrier()
                time.sleep(2)  # until the checkpoint is kept
                if attempt == 1 and session.get_world_rank() == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                if attempt == 2 and session.get_world_rank() == 0:
                    (folder / "waiting").touch()
                dist.barrier()
                time.sleep(60)

    result = TorchTrainer(
        train_func,
        train_loop_config={"folder": sys.argv[1]},
        scaling_config=ScalingConfig(num_workers=4),
        run_config=RunConfig(
            checkpoint_config=CheckpointConfig(num_to_keep=2),
            failure_config=FailureConfig(max_failures=1, max_preemptions=1),
        ),
    ).fit()
    print(json.dumps({
        "run_id": result.run_id, "flow_run_id": result.flow_run_id, "url": result.run_url, "attempts": result.attempts,
        "total": result.metrics["total"],
        "checkpoint": result.checkpoint.get_internal_representation(), "epoch": result.checkpoint.to_dict()["epoch"],
    }))
"""


@dataclass
class Outcome:
    """What a training on the servers has left behind."""

    printed: dict
    output: str
    run: Run
    folder: Path

    def places(self, attempt: int) -> list[dict]:
        """Where each rank of an attempt was, by its own account and by torch's variables."""
        return [json.loads((self.folder / f"place-{attempt}-{rank}.json").read_text()) for rank in range(4)]


@pytest.fixture(scope="module")
def outcome(servers: Servers, tmp_path_factory) -> Outcome:
    """A training that loses a worker in its first attempt and a node in its second."""
    folder = tmp_path_factory.mktemp("training")
    with drivers(folder) as driver:
        process = driver(SCRIPT, str(folder), own_server=True, own_ray=True, **servers.environment())
        process.wait_for((folder / "waiting").exists)
        servers.swap_node()
        assert process.wait() == 0, process.output
    printed = process.last_json()
    return Outcome(printed, process.output, MlflowClient(servers.mlflow).get_run(printed["run_id"]), folder)


def points(servers: Servers, run_id: str, metric: str) -> list[tuple[int, float]]:
    history = MlflowClient(servers.mlflow).get_metric_history(run_id, metric)
    return [(point.step, point.value) for point in history]


def assert_all_ranks_are_in_place(places: list[dict]) -> None:
    expected = [[0, 0, 2, 0], [1, 1, 2, 0], [2, 0, 2, 1], [3, 1, 2, 1]]
    assert [place["own"] for place in places] == expected, "ranks are ordered by node"
    assert [place["torch"] for place in places] == [[*place, 4] for place in expected]


def test_a_killed_worker_on_servers(servers, outcome):
    printed, run = outcome.printed, outcome.run
    assert '"outcome": "worker"' in run.data.tags["trainlib.attempt.001"]
    assert points(servers, run.info.run_id, "start")[4] == (5, 4.0), (
        "the retry resumes from a checkpoint that went through the tracking server"
    )
    assert_all_ranks_are_in_place(outcome.places(attempt=1))
    assert_all_ranks_are_in_place(outcome.places(attempt=2))
    assert run.info.status == "FINISHED"
    assert run.data.tags["prefect.flow_run_url"] == f"{servers.prefect}/runs/flow-run/{printed['flow_run_id']}"
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: f"{servers.prefect}/api"}), get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID(printed["flow_run_id"])).state
    assert state is not None
    assert state.type.value == "COMPLETED"


def test_a_lost_node_is_a_preemption_with_its_own_budget(servers, outcome):
    """The one failure that is allowed has already happened."""
    assert '"outcome": "preempted"' in outcome.run.data.tags["trainlib.attempt.002"]
    assert points(servers, outcome.run.info.run_id, "start")[5] == (6, 5.0), "and it resumes, too"
    assert_all_ranks_are_in_place(outcome.places(attempt=3))


def test_a_training_that_was_retried_twice_is_whole(servers, outcome):
    printed, run = outcome.printed, outcome.run
    assert printed["attempts"] == 3
    assert printed["total"] == 4.0, "all four ranks took part"
    assert printed["epoch"] == 5
    assert printed["checkpoint"][0] == "uri"
    assert printed["checkpoint"][1].startswith("mlflow-artifacts:/")
    assert printed["url"].startswith(servers.mlflow)
    assert points(servers, run.info.run_id, "epoch") == [(epoch + 1, float(epoch)) for epoch in range(6)]
    models = MlflowClient(servers.mlflow).search_logged_models(
        [run.info.experiment_id], filter_string=f"source_run_id = '{run.info.run_id}'"
    )
    assert sorted(model.name for model in models) == ["checkpoint_000004", "checkpoint_000005"]
    assert list(Path("/tmp").glob(f"trainlib-{run.info.run_id}")) == [], "no staged file is left"
    assert "Downloading" not in outcome.output, "four workers draw no progress bars across each other"


def test_a_model_behind_the_tracking_server_can_be_served(servers, tmp_path):
    """What MLflow needs to load it goes through that server, too, and a half of it does not count."""
    model = LinearRegression().fit([[1.0], [2.0]], [2.0, 4.0])
    store = f"{servers.mlflow}/api/2.0/mlflow-artifacts/artifacts/served"
    checkpoint = saved(SklearnCheckpoint.from_estimator(model), store)
    root = checkpoint.location.rpartition("/")[0]
    storage.put_files(root, {"code/half.py": b"x", "requirements.txt": b"ha"})
    assert put_model_files(checkpoint, "run-1") is None
    assert storage.names_in(root) == {"MLmodel", "checkpoint_000002", "code", "python_env.yaml", "requirements.txt"}
    storage.download(root, tmp_path / "model")
    predicted = pyfunc.load_model(str(tmp_path / "model")).predict(pd.DataFrame({"x": [3.0]}))
    assert predicted.tolist() == pytest.approx([6.0])
