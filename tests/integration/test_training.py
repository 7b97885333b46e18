"""What a training function can rely on, and what fit() gives back."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import ray

from tests.integration.leftovers import assert_nothing_left_behind
from trainlib import Checkpoint, CheckpointConfig, DataParallelTrainer, RunConfig, ScalingConfig, session
from trainlib._execution.pool.own_pool import pool
from trainlib.callbacks import JsonLoggerCallback
from trainlib.torch import TorchTrainer
from trainlib.tune.stopper import Stopper

TWO = ScalingConfig(num_workers=2)


def train_linear(config: dict) -> dict:
    """One step of data-parallel SGD per batch, from weights that differ between ranks at first."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    from trainlib.torch import prepare_data_loader, prepare_model

    data = torch.Generator().manual_seed(7)
    x, y = torch.randn(64, 3, generator=data), torch.randn(64, 1, generator=data)
    torch.manual_seed(100 + session.get_world_rank())
    network = torch.nn.Linear(3, 1)
    first = network.weight.detach().clone()
    model = prepare_model(network)
    loader = prepare_data_loader(DataLoader(TensorDataset(x, y), batch_size=config["batch_size"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = 0
    for _ in range(3):
        for inputs, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), labels).backward()
            optimizer.step()
            seen += len(inputs)
        session.report({"seen": seen})
    return {
        "first": first.numpy(),
        "weight": network.weight.detach().numpy(),
        "bias": network.bias.detach().numpy(),
        "seen": seen,
    }


def test_a_trainer_that_reserves_nothing_trains():
    """As Ray's users write it: the coordinating process needs no CPU of its own."""
    scaling = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}, trainer_resources={"CPU": 0})
    trainer = DataParallelTrainer(lambda: session.report({"workers": session.get_world_size()}), scaling_config=scaling)
    assert trainer.fit().metrics["workers"] == 2


def test_gradients_are_averaged_across_processes():
    """Equal weights on both ranks, and those of one process that sees both halves of each batch."""
    import torch

    zero, one = TorchTrainer(train_linear, train_loop_config={"batch_size": 8}, scaling_config=TWO).fit().returned
    assert not np.array_equal(zero["first"], one["first"]), "the ranks start from different weights"
    assert np.array_equal(zero["weight"], one["weight"])
    assert np.array_equal(zero["bias"], one["bias"])
    assert zero["seen"] == one["seen"] == 3 * 32, "each rank sees its own half"

    data = torch.Generator().manual_seed(7)
    x, y = torch.randn(64, 3, generator=data), torch.randn(64, 1, generator=data)
    torch.manual_seed(100)
    network = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(3):
        for start in range(0, 64, 16):  # a DistributedSampler deals rows out in turn
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(network(x[start : start + 16]), y[start : start + 16]).backward()
            optimizer.step()
    assert np.allclose(zero["weight"], network.weight.detach().numpy(), atol=1e-6)
    assert np.allclose(zero["bias"], network.bias.detach().numpy(), atol=1e-6)


def who_am_i(config: dict) -> dict:
    context = session.get_context()
    session.report({"epoch": 0})
    return {
        "world": (session.get_world_rank(), session.get_world_size()),
        "local": (session.get_local_rank(), session.get_local_world_size()),
        "node": session.get_node_rank(),
        "trial": (session.get_trial_name(), session.get_trial_id(), session.get_trial_dir()),
        "resources": session.get_trial_resources(),
        "experiment": session.get_experiment_name(),
        "context": (context.get_world_rank(), context.get_trial_name(), context.get_attempt(), context.get_run_id()),
        "environment": {key: os.environ.get(key) for key in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR")},
        "threads": os.environ["OMP_NUM_THREADS"],
        "pid": os.getpid(),
    }


def test_a_worker_knows_who_it_is():
    config = RunConfig(name="identity", experiment_name="who")
    scaling = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 2}, trainer_resources={"memory": 1})
    result = TorchTrainer(who_am_i, scaling_config=scaling, run_config=config).fit()
    for rank, told in enumerate(result.returned):
        assert told["world"] == (rank, 2)
        assert told["local"] == (rank, 2)
        assert told["node"] == 0
        assert told["trial"] == ("identity", f"{result.run_id[:5]}_00000", str(result.log_dir))
        assert told["resources"] == {"CPU": 4.0, "memory": 1.0}, "those of the whole training"
        assert told["experiment"] == "who"
        assert told["context"] == (rank, "identity", 1, result.run_id)
        assert told["environment"]["RANK"] == str(rank)
        assert told["environment"]["WORLD_SIZE"] == "2"
        assert told["environment"]["MASTER_ADDR"]
        assert told["threads"] == "2"


def counts(config: dict) -> None:
    for epoch in range(10):
        session.report({"epoch": epoch}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))


@pytest.mark.parametrize("stop", [{"training_iteration": 4}, lambda trial_id, result: result["epoch"] >= 3])
def test_stop_ends_a_training_at_exactly_that_iteration(curve, stop):
    result = TorchTrainer(counts, scaling_config=TWO, run_config=RunConfig(stop=stop)).fit()
    assert result.metrics["training_iteration"] == 4
    assert curve(result.run_id, "epoch") == [(1, 0.0), (2, 1.0), (3, 2.0), (4, 3.0)]
    assert result.checkpoint.to_dict()["epoch"] == 3


def test_a_trainer_without_a_framework():
    result = DataParallelTrainer(counts, scaling_config=TWO).fit()
    assert result.metrics["epoch"] == 9


def saves_directories(config: dict) -> None:
    import tempfile

    for epoch in range(3):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "weights.txt").write_text(f"weights of {epoch}")
            Path(folder, "nested").mkdir()
            Path(folder, "nested", "epoch.txt").write_text(str(epoch))
            session.report({"epoch": epoch}, checkpoint=Checkpoint.from_directory(folder))


def test_directories_are_snapshotted_before_report_returns():
    result = TorchTrainer(saves_directories, scaling_config=TWO).fit()
    for index, (checkpoint, metrics) in enumerate(result.best_checkpoints):
        assert metrics == {"epoch": index}
        with checkpoint.as_directory() as folder:
            assert Path(folder, "weights.txt").read_text() == f"weights of {index}"
            assert Path(folder, "nested", "epoch.txt").read_text() == str(index)
    links = sorted(result.log_dir.glob("checkpoints/checkpoint_*"))
    assert [link.name for link in links] == ["checkpoint_000000", "checkpoint_000001", "checkpoint_000002"]
    assert links[2].resolve() == Path(result.checkpoint.path).resolve()


def test_retention_deletes_files_and_models(registry):
    config = RunConfig(checkpoint_config=CheckpointConfig(num_to_keep=2))
    result = TorchTrainer(counts, scaling_config=TWO, run_config=config).fit()
    experiment = registry.get_run(result.run_id).info.experiment_id
    models = registry.search_logged_models([experiment], filter_string=f"source_run_id = '{result.run_id}'")
    assert sorted(model.name for model in models) == ["checkpoint_000008", "checkpoint_000009"]
    kept = {Path(model.artifact_location.removeprefix("file://")).parent.name for model in models}
    root = Path(models[0].artifact_location.removeprefix("file://")).parents[1]
    run_models = {folder.name for folder in root.iterdir() if any(folder.rglob("checkpoint_00000[0-9]"))}
    assert kept <= run_models
    assert {model.tags["trainlib.iteration"] for model in models} == {"9", "10"}
    assert sorted(link.name for link in result.log_dir.glob("checkpoints/checkpoint_*")) == [
        "checkpoint_000008",
        "checkpoint_000009",
    ]


def test_a_logged_model_carries_the_metrics_of_its_iteration(registry):
    result = TorchTrainer(counts, scaling_config=TWO).fit()
    experiment = registry.get_run(result.run_id).info.experiment_id
    best = registry.search_logged_models(
        [experiment],
        filter_string=f"source_run_id = '{result.run_id}'",
        order_by=[{"field_name": "metrics.epoch", "ascending": False}],
    )[0]
    assert best.name == "checkpoint_000009"
    assert [(metric.key, metric.value, metric.step) for metric in best.metrics] == [("epoch", 9.0, 10)]


def many_reports(config: dict) -> None:
    for step in range(config["reports"]):
        session.report({"a": step, "b": -step})


def test_no_point_is_lost_and_none_doubled(curve):
    result = TorchTrainer(many_reports, train_loop_config={"reports": 3000}, scaling_config=TWO).fit()
    expected = [(step + 1, float(step)) for step in range(3000)]
    assert curve(result.run_id, "a") == expected
    assert len(result.metrics_dataframe) == 3000


def prints() -> None:
    print("hello from", session.get_world_rank())
    print("careful", file=sys.stderr)
    session.report({"epoch": 0})


def test_prints_reach_the_terminal_and_prefect_with_their_rank(capfd):
    from uuid import UUID

    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import LogFilter, LogFilterFlowRunId

    result = TorchTrainer(prints, scaling_config=TWO).fit()
    shown = capfd.readouterr()
    assert "[rank 0] hello from 0" in shown.out
    assert "[rank 1] hello from 1" in shown.out
    assert "[rank 1] careful" in shown.err
    wanted = {"[rank 0] hello from 0", "[rank 1] hello from 1", "[rank 1] careful"}
    of_this_run = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[UUID(result.flow_run_id)]))
    messages: set[str] = set()
    deadline = time.monotonic() + 20  # Prefect sends logs every few seconds
    with get_client(sync_client=True) as client:
        while not wanted <= messages and time.monotonic() < deadline:
            messages = {log.message for log in client.read_logs(of_this_run)}
            time.sleep(0.2)
    assert wanted <= messages


def test_both_uis_link_to_each_other(registry):
    from uuid import UUID

    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    result = TorchTrainer(counts, train_loop_config={"lr": {"start": 0.1}}, scaling_config=TWO).fit()
    run = registry.get_run(result.run_id)
    assert run.data.tags["trainlib.flow_run_id"] == result.flow_run_id
    assert run.data.tags["prefect.flow_run_url"].endswith(f"/runs/flow-run/{result.flow_run_id}")
    assert run.data.tags["mlflow.user"]
    assert f"/runs/flow-run/{result.flow_run_id})" in run.data.tags["mlflow.note.content"]
    assert re.fullmatch(r"TorchTrainer_20[-\d]+_[-\d]+ · counts x2", run.info.run_name)
    assert run.data.params["lr.start"] == "0.1"
    with get_client(sync_client=True) as client:
        found = {
            artifact.key: artifact
            for artifact in client.read_artifacts(
                artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[UUID(result.flow_run_id)]))
            )
        }
        flow_run = client.read_flow_run(UUID(result.flow_run_id))
    assert flow_run.name == "counts · torch x2"
    assert "torch" in flow_run.tags
    assert result.run_url in found["mlflow-run"].data
    assert "iteration 10" in found["training-progress"].description
    assert found["training-progress"].data == 100.0, "also when nobody knew how many iterations there would be"
    report = found["training-report"]
    assert report.description.startswith("Finished · last ")
    assert f"]({result.run_url})" in report.data
    assert "| 1 | finished | the start | nothing |" in report.data
    assert "](data:image/svg+xml;base64," in report.data


def test_json_logs_are_kept_in_the_log_directory():
    result = TorchTrainer(
        counts,
        train_loop_config={"lr": 0.1},
        scaling_config=TWO,
        run_config=RunConfig(callbacks=[JsonLoggerCallback()]),
    ).fit()
    lines = Path(result.log_dir, "result.json").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(10))
    assert json.loads(Path(result.log_dir, "params.json").read_text()) == {"lr": 0.1}


def leaves_traces(config: dict) -> dict:
    """Changes everything that a process shares, and tells what it found of an earlier visit."""
    import logging
    import warnings

    import a_users_module
    import torch

    found = {
        "pid": os.getpid(),
        "environment": os.environ.get("LEFT_BEHIND"),
        "directory": os.environ["TRAINLIB_ORIG_WORKING_DIR"],
        "path": "/left/behind" in sys.path,
        "module": a_users_module.COUNTER,
        "dtype": str(torch.get_default_dtype()),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "torch": torch.rand(1).item(),
        "random": random.random(),
        "numpy": float(np.random.rand()),
        "level": logging.getLogger().level,
        "filters": len(warnings.filters),
    }
    os.environ["LEFT_BEHIND"] = "yes"
    os.chdir("/")
    sys.path.append("/left/behind")
    a_users_module.COUNTER += 1
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(7)
    torch.use_deterministic_algorithms(True)
    logging.getLogger().setLevel(1)
    warnings.simplefilter("ignore")
    if config["thread"]:
        sys.left_behind = ThreadPoolExecutor(1)  # its thread goes on waiting for more
        sys.left_behind.submit(os.getpid).result()
    session.report({"epoch": 0})
    return found


@pytest.fixture
def users_module(tmp_path, monkeypatch):
    (tmp_path / "a_users_module.py").write_text("COUNTER = 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_worker_is_handed_on_without_a_trace_of_what_ran_in_it(users_module):
    pool.clear()
    trainer = TorchTrainer(leaves_traces, train_loop_config={"thread": False}, scaling_config=TWO)
    first, second = trainer.fit().returned, trainer.fit().returned
    assert {told["pid"] for told in first} == {told["pid"] for told in second}, "the same processes are used again"
    different = {"pid", "random", "numpy", "torch"}
    for before, after in zip(first, second, strict=True):
        assert {k: v for k, v in after.items() if k not in different} == {
            k: v for k, v in before.items() if k not in different
        }
    values = [told[name] for told in first + second for name in ("random", "numpy", "torch")]
    assert len(set(values)) == len(values), "seeds do not reach the next training"


def test_a_worker_that_cannot_be_reset_is_replaced(users_module):
    trainer = TorchTrainer(leaves_traces, train_loop_config={"thread": True}, scaling_config=TWO)
    first, second = trainer.fit().returned, trainer.fit().returned
    assert {told["pid"] for told in first}.isdisjoint({told["pid"] for told in second})


def test_a_worker_that_died_while_it_was_idle_is_no_failure():
    pids = {told["pid"] for told in DataParallelTrainer(who_am_i, scaling_config=TWO).fit().returned}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert DataParallelTrainer(who_am_i, scaling_config=TWO).fit().attempts == 1


def test_idle_workers_reserve_nothing_and_are_let_go(monkeypatch):
    TorchTrainer(counts, scaling_config=TWO).fit()
    assert ray.available_resources()["CPU"] == ray.cluster_resources()["CPU"]
    pool.clear()
    assert_nothing_left_behind()


class StopsWhenThereIs(Stopper):
    def __init__(self, file: Path) -> None:
        self._file = file

    def __call__(self, trial_id: str, result: dict) -> bool:
        return False

    def stop_all(self) -> bool:
        return self._file.exists()


@pytest.mark.usefixtures("short_grace")
def test_a_stopper_ends_a_training_that_reports_nothing(tmp_path):
    def silent() -> None:
        session.report({"step": 1})
        time.sleep(0.5)
        (tmp_path / "stop").touch()
        time.sleep(60)

    started = time.monotonic()
    run_config = RunConfig(stop=StopsWhenThereIs(tmp_path / "stop"))
    result = DataParallelTrainer(silent, run_config=run_config).fit()
    assert result.metrics["step"] == 1
    assert time.monotonic() - started < 40
