"""A training that takes too long, or goes wrong, ends: with a result that says so, and its good checkpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State

from tests.integration.leftovers import assert_nothing_left_behind
from trainlib import (
    Checkpoint,
    CheckpointConfig,
    DataParallelTrainer,
    DivergenceConfig,
    RunConfig,
    ScalingConfig,
    StopReason,
    session,
)
from trainlib._registry import tags
from trainlib._registry.attempts import Outcome, recorded_attempts
from trainlib._registry.metric_writer import MetricWriter
from trainlib.tune import TuneConfig, Tuner, grid_search


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("it did not happen within 30 s")
        time.sleep(0.02)


def shown_in_prefect(flow_run_id: str) -> list[tuple[str, str, str]]:
    """Type, name and message of the states of a flow run and its task runs. Its server hears of the last ones a moment later."""
    found = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(flow_run_id)]))
    with get_client(sync_client=True) as client:

        def states() -> list[State]:
            runs = [client.read_flow_run(UUID(flow_run_id)), *client.read_task_runs(flow_run_filter=found)]
            return [run.state for run in runs if run.state is not None]

        wait_until(lambda: all(state.is_final() for state in states()))
        return [(state.type.value, state.name, state.message or "") for state in states()]


def turns_nan(config: dict) -> None:
    for loss in (1.0, 0.5, math.nan, 0.1):
        session.report({"loss": loss}, checkpoint=Checkpoint.from_dict({"loss": loss}))


def test_a_training_whose_loss_is_nan_ends_there_and_keeps_the_checkpoint_before(registry, capsys):
    """Also with ``num_to_keep=1`` and no score, where the newest one would have taken its place."""
    config = RunConfig(stop_on_nan=True, checkpoint_config=CheckpointConfig(num_to_keep=1))
    result = DataParallelTrainer(turns_nan, scaling_config=ScalingConfig(num_workers=2), run_config=config).fit()
    message = "loss is NaN at iteration 3 (RunConfig.stop_on_nan)"
    assert (result.stopped.reason, str(result.stopped), result.error) == (StopReason.NAN, message, None)
    assert [row["loss"] for row in result.history][:2] == [1.0, 0.5]
    assert len(result.history) == 3
    assert result.checkpoint.to_dict()["loss"] == 0.5
    assert [checkpoint.to_dict()["loss"] for checkpoint, _ in result.best_checkpoints] == [0.5]
    assert f"stopped: {message}. The best checkpoint is checkpoint_000001." in capsys.readouterr().err
    run = registry.get_run(result.run_id)
    assert (run.info.status, run.data.tags[tags.STOPPED]) == ("FINISHED", "nan")
    assert shown_in_prefect(result.flow_run_id) == [("COMPLETED", "Stopped", f"{message}.")] * 2
    assert_nothing_left_behind()


def hangs_once(config: dict) -> None:
    if session.get_checkpoint() is None:
        session.report({"step": 1}, checkpoint=Checkpoint.from_dict({"step": 1}))
        time.sleep(600)
    session.report({"step": 2}, checkpoint=Checkpoint.from_dict({"step": 2}))


@pytest.mark.usefixtures("short_grace")
def test_time_ends_a_training_that_hangs_and_is_remembered(registry):
    """A process that continues it has no time left. With more time, it goes on from the checkpoint."""
    started = time.monotonic()
    stopped = DataParallelTrainer(hangs_once, run_config=RunConfig(max_time_s=1)).fit()
    assert time.monotonic() - started < 60
    assert (stopped.stopped.reason, stopped.checkpoint.to_dict()["step"]) == (StopReason.TIME_LIMIT, 1)
    assert_nothing_left_behind()
    run = registry.get_run(stopped.run_id)
    assert (run.info.status, run.data.tags[tags.STOPPED]) == ("FINISHED", "time limit")
    assert 1.0 <= float(run.data.tags[tags.SPENT]) < 30

    again = DataParallelTrainer.restore(stopped).fit()
    assert (again.stopped.reason, again.checkpoint.to_dict()["step"]) == (StopReason.TIME_LIMIT, 1)
    assert again.metrics["step"] == 1
    more = DataParallelTrainer.restore(stopped, run_config=RunConfig(max_time_s=600)).fit()
    assert (more.stopped, more.checkpoint.to_dict()["step"], more.attempts) == (None, 2, 3)
    run = registry.get_run(stopped.run_id)
    assert run.data.tags[tags.STOPPED] == "", "it did not end by a limit"
    outcomes = [attempt.outcome for attempt in recorded_attempts(run.data.tags)]
    assert outcomes == [Outcome.TIME_LIMIT, Outcome.TIME_LIMIT, Outcome.FINISHED]


def fares(config: dict) -> None:
    for loss in {"well": (0.5, 0.4), "nan": (0.01, math.nan, 0.0), "up": (0.02, 9.0, 0.0)}[config["how"]]:
        session.report({"loss": loss}, checkpoint=Checkpoint.from_dict({"loss": loss}))


def test_in_a_sweep_such_trials_are_stopped_and_none_of_them_is_best(registry, capsys):
    """Even where the best value of each trial counts: what came before NaN is not what the trial ended with."""
    config = RunConfig(stop_on_nan=True, divergence=DivergenceConfig(patience=1))
    grid = Tuner(
        fares,
        param_space={"how": grid_search(["nan", "up", "well"])},
        tune_config=TuneConfig(metric="loss", mode="min"),
        run_config=config,
    ).fit()
    assert grid.num_errors == 0
    reasons = [result.stopped.reason if result.stopped else None for result in grid]
    assert reasons == [StopReason.NAN, StopReason.DIVERGED, None]
    assert [result.checkpoint.to_dict()["loss"] for result in grid] == [0.01, 0.02, 0.4]
    for scope in ("last", "all"):
        assert grid.get_best_result(scope=scope).config["how"] == "well"
    assert registry.get_run(grid.run_id).data.metrics["best_loss"] == 0.4
    names = sorted(name for _, name, _ in shown_in_prefect(grid.flow_run_id))
    assert names == ["Completed", "Completed", "Stopped", "Stopped"]
    assert "2 stopped" in capsys.readouterr().err


def test_the_time_that_is_spent_is_recorded_while_nothing_is_reported(registry, tmp_path):
    """So that a process that is killed leaves it behind."""
    run_id = registry.create_run(registry.create_experiment("spent")).info.run_id
    writer = MetricWriter(registry, run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    writer.note(tags={tags.SPENT: "5.0"}, soon=True)
    wait_until(lambda: registry.get_run(run_id).data.tags.get(tags.SPENT) == "5.0")
    writer.note(tags={tags.SPENT: "10.0"}, soon=True)
    wait_until(lambda: registry.get_run(run_id).data.tags.get(tags.SPENT) == "10.0")
    writer.close()
