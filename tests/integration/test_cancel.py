"""Whoever ends a training, in Prefect or with a signal: it ends soon, and keeps every checkpoint that was reported."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.states import Cancelling

from tests.integration import flaky_store
from tests.integration.leftovers import assert_nothing_left_behind
from tests.integration.shown_sweeps import children
from trainlib import Checkpoint, DataParallelTrainer, RunConfig, session, trainable, tune
from trainlib._registry.logged_models import read_checkpoints
from trainlib.errors import TrainingCancelledError

WITHIN_S = 10
"""How soon a cancelled run has to be over."""


def cancel(flow_run_id: str) -> None:
    """What the button Cancel of the Prefect UI does."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(flow_run_id), Cancelling())


@trainable
def train_func(config: dict[str, Any]) -> None:
    """Reports two checkpoints, whose uploads take a while, and then hangs, unless it is told to go on."""
    from tests.integration import flaky_store

    os.environ[flaky_store.ROOT] = config["folder"]
    os.environ[flaky_store.SECONDS] = "0.7"
    folder, trial = Path(config["folder"]), config.get("x", 0)
    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
    for epoch in range(start, 3):
        if epoch == 2 and not (folder / "go_on").exists():
            (folder / f"reported-{trial}").touch()
            time.sleep(60)
        session.report({"epoch": epoch, "start": start}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))


def run_config(name: str) -> RunConfig:
    return RunConfig(name=name, storage_path="flaky://bucket/runs", experiment_name=name, verbose=0)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(flaky_store.ROOT, str(tmp_path))
    return tmp_path


@pytest.fixture
def interrupt(folder, newest_run) -> Callable[..., list[float]]:
    """Ends the training of a name as soon as its reports are made; gives when it did."""

    def wait_and_end(name: str, how: str, reports: int, sent: list[float]) -> None:
        while len(list(folder.glob("reported-*"))) < reports:
            time.sleep(0.02)
        flow_run_id = newest_run(name).data.tags["trainlib.flow_run_id"]
        sent.append(time.monotonic())
        if how == "cancel":
            cancel(flow_run_id)
            (folder / "cancelled").touch()
        else:
            os.kill(os.getpid(), signal.SIGINT if how == "Ctrl-C" else signal.SIGTERM)

    def start(name: str, how: str, reports: int = 1) -> list[float]:
        sent: list[float] = []
        threading.Thread(target=wait_and_end, args=(name, how, reports, sent), daemon=True).start()
        return sent

    # Whoever runs the tests in the background makes them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield start
    signal.signal(signal.SIGINT, before)


def saved(registry, run) -> list[int]:
    """The numbers of a run's checkpoints that are complete; fails if others were left."""
    found = read_checkpoints(registry, run.info.experiment_id, run.info.run_id)
    assert found.unfinished == ()
    return [checkpoint.index for checkpoint in found.saved]


@pytest.mark.parametrize(
    ("how", "error"),
    [("cancel", TrainingCancelledError), ("Ctrl-C", KeyboardInterrupt), ("SIGTERM", SystemExit)],
    ids=["cancel", "Ctrl-C", "SIGTERM"],
)
def test_a_training_that_is_ended_keeps_the_checkpoints_that_are_being_uploaded(
    folder, interrupt, registry, newest_run, flow_state, capsys, how, error
):
    name = f"ended-{how}-{os.getpid()}"
    trainer = DataParallelTrainer(train_func, train_loop_config={"folder": str(folder)}, run_config=run_config(name))
    sent = interrupt(name, how)
    with pytest.raises(error) as raised:
        trainer.fit()
    took = time.monotonic() - sent[0]

    run = newest_run(name)
    assert took < WITHIN_S
    assert saved(registry, run) == [0, 1]
    assert run.info.status == "KILLED"
    assert '"outcome": "cancelled"' in run.data.tags["trainlib.attempt.001"]
    assert flow_state(run.data.tags["trainlib.flow_run_id"]) == ("CANCELLED" if how == "cancel" else "CRASHED")
    assert "could not be saved" not in capsys.readouterr().err
    assert_nothing_left_behind()
    if how == "cancel":
        assert "was cancelled in Prefect" in str(raised.value)
        (folder / "go_on").touch()
        result = trainer.fit()
        assert result.run_id == run.info.run_id, "the same run goes on"
        assert result.metrics["start"] == 2, "from its newest checkpoint"


def reports_fast(config: dict[str, Any]) -> None:
    """Reports checkpoints without a pause, and notes down which reports have returned."""
    folder = Path(config["folder"])
    for epoch in range(1000):
        session.report({"epoch": epoch}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
        with open(folder / "returned", "a") as file:
            file.write(f"{epoch}\n")
        if epoch == 5:
            (folder / "reported-0").touch()


def test_no_checkpoint_is_lost_on_its_way_when_a_training_that_reports_fast_is_ended(
    folder, interrupt, registry, newest_run
):
    name = f"ended-fast-{os.getpid()}"
    interrupt(name, "Ctrl-C")
    with pytest.raises(KeyboardInterrupt):
        DataParallelTrainer(
            reports_fast, train_loop_config={"folder": str(folder)}, run_config=RunConfig(name=name, verbose=0)
        ).fit()
    returned = [int(line) for line in (folder / "returned").read_text().splitlines()]
    assert len(returned) < 1000
    assert set(saved(registry, newest_run(name))) >= set(returned)
    assert_nothing_left_behind()


def test_a_training_in_a_thread_of_the_user_can_be_cancelled(folder, interrupt, registry, newest_run, flow_state):
    name = f"cancelled-in-a-thread-{os.getpid()}"
    raised: list[BaseException] = []

    def fit() -> None:
        try:
            DataParallelTrainer(
                train_func, train_loop_config={"folder": str(folder)}, run_config=run_config(name)
            ).fit()
        except BaseException as error:
            raised.append(error)

    sent = interrupt(name, "cancel")
    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert time.monotonic() - sent[0] < WITHIN_S
    assert [type(error) for error in raised] == [TrainingCancelledError]
    run = newest_run(name)
    assert saved(registry, run) == [0, 1]
    assert run.info.status == "KILLED"
    assert flow_state(run.data.tags["trainlib.flow_run_id"]) == "CANCELLED"


def test_a_training_that_is_over_when_it_is_cancelled_gives_its_result(
    folder, interrupt, newest_run, flow_state, monkeypatch
):
    def train_func(config: dict[str, Any]) -> None:
        session.report({"epoch": 0})
        (config["folder"] / "reported-0").touch()
        while not (config["folder"] / "cancelled").exists():
            time.sleep(0.05)

    name = f"cancelled-too-late-{os.getpid()}"
    monkeypatch.setattr("trainlib.flows._cancelling.LOOK_S", 60.0)
    interrupt(name, "cancel")
    result = DataParallelTrainer(
        train_func, train_loop_config={"folder": folder}, run_config=RunConfig(name=name, verbose=0)
    ).fit()
    assert result.metrics["epoch"] == 0
    assert newest_run(name).info.status == "FINISHED"
    assert flow_state(result.flow_run_id) == "CANCELLED", "Prefect accepts nothing else"


def test_a_sweep_that_is_cancelled_keeps_the_checkpoints_of_its_trials(
    folder, interrupt, registry, newest_run, flow_state, capsys
):
    name = f"cancelled-sweep-{os.getpid()}"
    tuner = tune.Tuner(
        train_func,
        param_space={"x": tune.grid_search([0, 1, 2]), "folder": str(folder)},
        tune_config=tune.TuneConfig(max_concurrent_trials=2),
        run_config=run_config(name),
    )
    sent = interrupt(name, "cancel", reports=2)
    with pytest.raises(TrainingCancelledError, match="cancelled in Prefect"):
        tuner.fit()
    assert time.monotonic() - sent[0] < WITHIN_S
    parent = newest_run(name)
    trials = children(registry, parent.info.run_id)
    assert [run.info.status for run in (parent, *trials)] == ["KILLED"] * 3
    assert [saved(registry, run) for run in trials] == [[0, 1], [0, 1]]
    assert flow_state(parent.data.tags["trainlib.flow_run_id"]) == "CANCELLED"
    assert "could not be saved" not in capsys.readouterr().err
    assert_nothing_left_behind()


SERVE = """
    import prefect
    from trainlib.flows import train, tune

    if __name__ == "__main__":
        prefect.serve(train.to_deployment("cancelled"), tune.to_deployment("cancelled"))
"""


def test_runs_of_deployments_that_are_cancelled_keep_their_checkpoints(
    driver, folder, registry, newest_run, flow_state
):
    """Prefect's runner ends their processes with SIGTERM."""
    root = str(Path(__file__).parents[2])
    served = driver(SERVE, PYTHONPATH=root, PREFECT_RUNNER_POLL_FREQUENCY="1", **{flaky_store.ROOT: str(folder)})
    names = {flow: f"cancelled-{flow}-deployment-{os.getpid()}" for flow in ("train", "tune")}
    training = {
        "train_loop": "tests.integration.test_cancel:train_func",
        "framework": "function",
        "train_loop_config": {"folder": str(folder)},
    }
    specs = {
        "train": {**training, "run_config": run_config(names["train"]).model_dump(mode="json")},
        "tune": {
            "train": {**training, "run_config": run_config(names["tune"]).model_dump(mode="json")},
            "param_space": {"train_loop_config": {"x": {"grid_search": [1, 2]}}},
        },
    }
    with get_client(sync_client=True) as client:
        served.wait_for(lambda: "Your deployments are being served" in served.output)
        for flow, spec in specs.items():
            deployment = client.read_deployment_by_name(f"{flow}/cancelled")
            client.create_flow_run_from_deployment(deployment.id, parameters={"spec": spec})
    served.wait_for(lambda: len(list(folder.glob("reported-*"))) == 3)

    runs = {flow: newest_run(name) for flow, name in names.items()}
    flow_runs = {flow: run.data.tags["trainlib.flow_run_id"] for flow, run in runs.items()}
    sent = time.monotonic()
    for flow_run in flow_runs.values():
        cancel(flow_run)
    served.wait_for(lambda: served.output.count("was terminated") == 2)
    assert time.monotonic() - sent < WITHIN_S
    # The runner looks every 3 s whether the processes have ended, which end their connections to Ray first.
    served.wait_for(lambda: {flow_state(flow_run) for flow_run in flow_runs.values()} == {"CANCELLED"}, timeout=20)
    trials = children(registry, runs["tune"].info.run_id)
    for run in (newest_run(names["train"]), *trials):
        assert run.info.status == "KILLED"
        assert saved(registry, run) == [0, 1]
    assert newest_run(names["tune"]).info.status == "KILLED"
    with get_client(sync_client=True) as client:
        for flow_run in flow_runs.values():
            states = [state.type.value for state in client.read_flow_run_states(UUID(flow_run))]
            assert "CRASHED" not in states, states
    assert "could not be saved" not in served.output
