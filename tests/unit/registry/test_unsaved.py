"""The file for what MLflow has not accepted yet."""

from __future__ import annotations

import math

from mlflow.entities import Metric, Param, RunTag

from trainlib._registry.unsaved import UnsavedFile


def points(*steps: int) -> list[Metric]:
    return [Metric("loss", step / 2, step * 1000, step, run_id="r") for step in steps]


def test_it_is_read_in_the_order_of_writing_and_goes_on_where_it_was(tmp_path):
    file = UnsavedFile(tmp_path / "logs" / "unsaved.jsonl", "r")
    assert not file.exists
    assert len(file.next_batch()[0]) == 0
    file.append(points(*range(1000)))
    steps = []
    for more in ([*range(1000, 1500)], []):
        file.append(points(*more))
        batch, end = file.next_batch()
        assert 0 < len(batch) <= 1000
        steps += [point.step for point in batch.points]
        file.done(end)
    assert steps == list(range(len(steps)))
    while len((batch := file.next_batch())[0]):
        steps += [point.step for point in batch[0].points]
        file.done(batch[1])
    assert steps == list(range(1500))
    file.remove()
    assert not file.exists


def test_points_params_and_tags_come_back_as_they_were(tmp_path):
    file = UnsavedFile(tmp_path / "unsaved.jsonl", "r")
    gap = Metric("loss", math.nan, 5, 6, run_id="r")
    file.append([Param("lr", "0.1"), RunTag("trainlib.attempts", "2"), *points(3), gap])
    batch, _ = UnsavedFile(file.path, "r").next_batch()
    assert [(param.key, param.value) for param in batch.params] == [("lr", "0.1")]
    assert [(tag.key, tag.value) for tag in batch.tags] == [("trainlib.attempts", "2")]
    assert batch.points[0] == points(3)[0]
    assert (batch.points[1].step, math.isnan(batch.points[1].value)) == (6, True)


def test_a_line_that_was_not_written_to_its_end_is_left_out(tmp_path):
    file = UnsavedFile(tmp_path / "unsaved.jsonl", "r")
    file.append(points(1))
    with open(file.path, "a") as torn:
        torn.write('{"key": "loss", "val')
    batch, _ = file.next_batch()
    assert [point.step for point in batch.points] == [1]
