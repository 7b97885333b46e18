"""When a training has gone wrong, by what it reports."""

from __future__ import annotations

import math

import pytest

from trainlib import Checkpoint, CheckpointConfig, DivergenceConfig, RunConfig, StopReason
from trainlib._execution.divergence import DivergenceWatch
from trainlib._execution.events import Report
from trainlib._execution.outbox import Outbox
from trainlib._execution.worker_session import Assignment, WorkerSession
from trainlib.session import TrainContext


def verdicts(watch: DivergenceWatch, *losses: float) -> list[str | None]:
    """What is said after each report, and ``ill`` where a checkpoint is not worth keeping."""
    said = []
    for iteration, loss in enumerate(losses, start=1):
        stopped = watch.inspect(iteration, {"loss": loss})
        said.append(stopped.reason.value if stopped else None if watch.is_well else "ill")
    return said


def of(**settings) -> DivergenceWatch:
    return DivergenceWatch(divergence=DivergenceConfig(**settings))


def test_nothing_is_watched_unless_it_is_asked_for():
    """So that a program that was written for other guides runs as it did there."""
    watch = DivergenceWatch.of(RunConfig())
    assert not watch.is_on
    assert verdicts(watch, math.nan, math.inf, 1e30) == [None, None, None]


def test_any_metric_that_is_nan_ends_a_training_and_is_named():
    watch = DivergenceWatch.of(RunConfig(stop_on_nan=True))
    assert watch.inspect(1, {"loss": 0.5, "best_loss": math.inf}) is None, "a common first value of the best loss"
    stopped = watch.inspect(2, {"loss": 0.5, "grad": math.nan, "auc": math.nan})
    assert stopped is not None
    assert stopped.reason is StopReason.NAN
    assert str(stopped) == "grad, auc are NaN at iteration 2 (RunConfig.stop_on_nan)"


@pytest.mark.parametrize(
    ("settings", "losses", "said"),
    [
        ({"patience": 1}, [1.0, 0.5, 4.9, 5.1], [None, None, None, "diverged"]),
        ({"patience": 2}, [1.0, 11, 2.0, 11, 12], [None, "ill", None, "ill", "diverged"]),
        ({"patience": 2}, [1.0, math.nan, math.inf], [None, "ill", "diverged"]),
        ({"factor": None, "bound": 3.0, "patience": 1}, [0.0, 2.9, 3.1], [None, None, "diverged"]),
        ({"patience": 1}, [0.0, 1e6], [None, None]),  # of 0, every value is infinitely many times
        ({"patience": 1}, [-5.0, 5.0, 39.0, 41.0], [None, None, None, "diverged"]),
        ({"factor": 2.0, "patience": 1}, [4.0, 6.0, 3.0, 7.0], [None, None, None, "diverged"]),
    ],
)
def test_a_metric_that_grows_far_beyond_its_best(settings, losses, said):
    assert verdicts(of(**settings), *losses) == said


def test_a_report_without_the_metric_changes_nothing():
    watch = of(patience=2)
    assert verdicts(watch, 1.0, 50.0) == [None, "ill"]
    assert watch.inspect(3, {"accuracy": 0.5}) is None
    assert str(watch.inspect(4, {"loss": 60})) == (
        "loss is 60 at iteration 4, more than 10 times its best, 1, for 2 reports in a row (RunConfig.divergence)"
    )


def test_a_checkpoint_of_a_report_that_went_wrong_is_not_saved_and_later_ones_are(tmp_path):
    """Also one that is saved by itself, after such a report. The next one has the next free number."""
    assignment = Assignment(
        context=TrainContext(),
        iterations_done=0,
        next_checkpoint=0,
        resume_from=None,
        checkpoint_config=CheckpointConfig(),
        staging=str(tmp_path),
        shares_disk=True,
        in_step=False,
        environment={},
        import_path=[],
        watch=of(patience=2),
    )
    outbox = Outbox()
    worker = WorkerSession(assignment, outbox)
    for loss in (1.0, 50.0, 0.9):
        worker.report({"loss": loss}, Checkpoint.from_dict({"loss": loss}))
        worker.save(Checkpoint.from_dict({"loss": loss}))
    reports = [event for event in outbox.drain(0.1) if isinstance(event, Report)]
    made = [(each.iteration, each.checkpoint.index if each.checkpoint else None) for each in reports]
    assert made == [(1, 0), (1, 1), (2, None), (3, 2), (3, 3)]
