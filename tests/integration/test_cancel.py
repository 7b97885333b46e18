"""Whoever ends a training, in Prefect or with a signal: it ends soon, and keeps every checkpoint that was reported."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect import flow, runtime, task
from prefect.client.orchestration import get_client
from prefect.states import AwaitingRetry, Cancelling, Suspended

from tests.integration import flaky_store
from tests.integration.leftovers import assert_nothing_left_behind
from tests.integration.shown_sweeps import children
from trainlib import Checkpoint, DataParallelTrainer, RunConfig, session, trainable, tune
from trainlib._registry.logged_models import read_checkpoints
from trainlib.errors import TrainingCancelledError
from trainlib.flows import _embedded as embedded

pytestmark = pytest.mark.alone

WITHIN_S = 10
"""How soon a cancelled run has to be over."""


def cancel(flow_run_id: str) -> None:
    """What the button Cancel of the Prefect UI does."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(flow_run_id), Cancelling())


def suspend(flow_run_id: str) -> None:
    """What the button Suspend of the Prefect UI does, with the timeout that it proposes."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(flow_run_id), Suspended(timeout_seconds=300), force=True)


def retry(flow_run_id: str) -> None:
    """What the button Retry of the Prefect UI does."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(UUID(flow_run_id), AwaitingRetry(message="Retry from the UI"), force=True)


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
        elif how == "cancel the caller":
            cancel((folder / "caller").read_text())
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


@pytest.mark.parametrize("where", ["in its main thread", "in a task of its own"])
def test_a_training_ends_when_a_flow_that_called_it_is_cancelled(
    folder, interrupt, registry, newest_run, flow_state, capsys, where
):
    name = f"caller-cancelled-{where}-{os.getpid()}"

    @flow
    def inner() -> None:
        DataParallelTrainer(train_func, train_loop_config={"folder": str(folder)}, run_config=run_config(name)).fit()

    @task
    def step() -> None:
        inner()

    @flow(flow_run_name="nightly")
    def outer() -> None:
        (folder / "caller").write_text(str(runtime.flow_run.id))
        if where == "in its main thread":
            inner()
        else:
            step.submit().result()

    embedded.start()
    embedded.wait()
    sent = interrupt(name, "cancel the caller")
    with pytest.raises(TrainingCancelledError, match="'nightly'"):
        outer()
    assert time.monotonic() - sent[0] < WITHIN_S
    run = newest_run(name)
    assert saved(registry, run) == [0, 1]
    assert run.info.status == "KILLED"
    assert flow_state(run.data.tags["trainlib.flow_run_id"]) == "CANCELLED"
    assert flow_state((folder / "caller").read_text()) == "CANCELLED", "and not Cancelling for good"
    assert "could not be saved" not in capsys.readouterr().err
    assert_nothing_left_behind()


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
    from tests.integration.test_cancel import run_config, train_func
    from trainlib import DataParallelTrainer
    from trainlib.flows import sweep, train

    @prefect.flow
    def nightly(folder: str, name: str) -> None:
        config = {"folder": folder, "x": "nightly"}
        DataParallelTrainer(train_func, train_loop_config=config, run_config=run_config(name)).fit()

    if __name__ == "__main__":
        prefect.serve(*(each.to_deployment("cancelled") for each in (train, sweep, nightly)))
"""


def test_runs_of_deployments_are_suspended_resumed_cancelled_and_retried_as_in_the_ui(
    driver, folder, registry, newest_run, flow_state, webhook
):
    """Prefect's runner ends the processes of those that are cancelled with SIGTERM. Those that are suspended end themselves."""
    environment = {flaky_store.ROOT: str(folder), "TRAINLIB_NOTIFY_BLOCK": webhook.block}
    root = str(Path(__file__).parents[2])
    served = driver(SERVE, PYTHONPATH=root, PREFECT_RUNNER_POLL_FREQUENCY="1", **environment)
    names = {flow: f"cancelled-{flow}-deployment-{os.getpid()}" for flow in ("train", "sweep")}
    trainer = {
        "kind": "function",
        "train_loop": "tests.integration.test_cancel:train_func",
        "train_loop_config": {"folder": str(folder)},
    }
    space = {"param_space": {"train_loop_config": {"x": {"grid_search": [1, 2]}}}}
    parameters = {
        flow: {
            "trainer": trainer,
            "name": name,
            "run_config": run_config(name).model_dump(
                mode="json", include={"storage_path", "experiment_name", "verbose"}
            ),
            **(space if flow == "sweep" else {}),
        }
        for flow, name in names.items()
    }

    def start(name: str, given: dict[str, Any]) -> str:
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name(f"{name}/cancelled")
            return str(client.create_flow_run_from_deployment(deployment.id, parameters=given).id)

    served.wait_for(lambda: "Your deployments are being served" in served.output)
    for each, given in parameters.items():
        start(each, given)

    def wait_until_reported(trainings: int = 3) -> None:
        served.wait_for(lambda: len(list(folder.glob("reported-*"))) == trainings)
        for reported in folder.glob("reported-*"):
            reported.unlink()

    def recorded() -> list[Any]:
        """The runs of the training, the sweep and its trials."""
        runs = [newest_run(name) for name in names.values()]
        return [*runs, *children(registry, runs[1].info.run_id)]

    def assert_all_are(status: str) -> None:
        runs = recorded()
        assert [run.info.status for run in runs] == [status] * 4
        assert [saved(registry, run) for run in runs if run is not runs[1]] == [[0, 1]] * 3

    wait_until_reported()
    began = [run.info.run_id for run in recorded()]
    flow_runs = [newest_run(name).data.tags["trainlib.flow_run_id"] for name in names.values()]
    with get_client(sync_client=True) as client:
        for flow_run in flow_runs:
            suspend(flow_run)
        served.wait_for(lambda: served.output.count("is paused") == 2)
        assert_all_are("SCHEDULED")
        assert_nothing_left_behind()
        for flow_run in flow_runs:
            state = client.read_flow_run(UUID(flow_run)).state
            assert state.name == "Suspended"
            assert state.state_details.pause_timeout > datetime.now(UTC) + timedelta(days=29)
            assert "Resume goes on from the newest checkpoint" in state.message
            client.resume_flow_run(UUID(flow_run))

    # A flow of the user's own, which calls fit(), is cancelled with them.
    called = f"cancelled-in-a-deployment-{os.getpid()}"
    caller = start("nightly", {"folder": str(folder), "name": called})
    wait_until_reported(4)
    sent = time.monotonic()
    for flow_run in (*flow_runs, caller):
        cancel(flow_run)
    served.wait_for(lambda: served.output.count("was terminated") == 3)
    assert time.monotonic() - sent < WITHIN_S
    # The runner looks every 3 s whether the processes have ended, which end their connections to Ray first.
    served.wait_for(lambda: {flow_state(flow_run) for flow_run in (*flow_runs, caller)} == {"CANCELLED"}, timeout=20)
    assert_all_are("KILLED")
    assert newest_run(called).info.status == "KILLED"
    assert saved(registry, newest_run(called)) == [0, 1]
    assert flow_state(newest_run(called).data.tags["trainlib.flow_run_id"]) == "CANCELLED"
    with get_client(sync_client=True) as client:
        states = [state.type.value for state in client.read_flow_run_states(UUID(caller))]
    assert "CRASHED" not in states, "or whoever is told of crashes would be told of this one"
    assert '"outcome": "suspended"' in newest_run(names["train"]).data.tags["trainlib.attempt.001"]
    assert '"outcome": "cancelled"' in newest_run(names["train"]).data.tags["trainlib.attempt.002"]

    (folder / "go_on").touch()
    for flow_run in flow_runs:
        retry(flow_run)
    served.wait_for(lambda: {flow_state(flow_run) for flow_run in flow_runs} == {"COMPLETED"})
    assert [run.info.run_id for run in recorded()] == began, "the same runs go on"
    assert {run.info.status for run in recorded()} == {"FINISHED"}
    assert newest_run(names["train"]).data.metrics == {"epoch": 2, "start": 2}, "from the newest checkpoint"
    with get_client(sync_client=True) as client:
        for flow_run in flow_runs:
            states = [state.type.value for state in client.read_flow_run_states(UUID(flow_run))]
            assert "CRASHED" not in states, states
    assert "could not be saved" not in served.output
    titles = [f"{names['train']} · 1 worker", f"{names['sweep']} · 2 trials"]
    posts = [f"{how}: {title}" for how in ("Cancelled", "Completed") for title in titles]
    posts.append(f"Cancelled: {called} · 1 worker")
    served.wait_for(lambda: len(webhook.posts) >= len(posts), timeout=20)
    assert sorted(post["subject"] for post in webhook.posts) == sorted(posts)
    (of_training,) = (post["body"] for post in webhook.posts if post["subject"] == f"Completed: {titles[0]}")
    assert of_training.startswith("Finished · last ")
    assert f"/runs/flow-run/{flow_runs[0]}" in of_training
    assert began[0] in of_training, "the link to MLflow"
