"""Points, and the checkpoints that they were reported with."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from mlflow.entities import Metric

from trainlib._registry.patience import Patience
from trainlib._registry.reported_checkpoints import ReportedCheckpoints
from trainlib._registry.retention import SavedCheckpoint


def point(step: int, key: str = "loss") -> Metric:
    return Metric(key, 1.0, 0, step, run_id="run")


def saved(model_id: str) -> Future[SavedCheckpoint]:
    future: Future[SavedCheckpoint] = Future()
    future.set_result(SavedCheckpoint(0, 1, model_id, "/somewhere", None, {}, 0.0))
    return future


def models(checkpoints: ReportedCheckpoints, *points: Metric) -> list[str | None]:
    return [each.model_id for each in checkpoints.linked(points)]


@pytest.fixture
def patience() -> Patience:
    return Patience(60.0, "http://mlflow")


def test_points_are_linked_to_their_checkpoints_until_they_are_written(patience):
    checkpoints = ReportedCheckpoints("run", patience)
    assert models(checkpoints, point(1)) == [None]
    checkpoints.add(1, saved("m-1"))
    checkpoints.add(2, saved("m-2"))
    assert models(checkpoints, point(1), point(1, "system/data/train/rows"), point(2), point(3)) == [
        "m-1",
        None,
        "m-2",
        None,
    ]
    checkpoints.written([point(2)])
    assert models(checkpoints, point(1), point(2, "accuracy")) == [None, "m-2"], "the iteration may have more points"


def test_a_checkpoint_that_could_not_be_created_leaves_its_points_alone(patience):
    checkpoints, failed = ReportedCheckpoints("run", patience), Future()
    failed.set_exception(ValueError("refused"))
    checkpoints.add(1, failed)
    assert models(checkpoints, point(1)) == [None]


def test_a_checkpoint_that_mlflow_does_not_know_yet_is_not_waited_for_while_mlflow_is_away(patience):
    checkpoints = ReportedCheckpoints("run", patience)
    checkpoints.add(1, Future())

    def away() -> None:
        raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        patience.once(away)
    with pytest.raises(TimeoutError, match="does not know the checkpoint yet"):
        models(checkpoints, point(1))
