"""What a training has reported so far."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from trainlib._execution.events import Report
from trainlib._execution.worker import WorkerFacts
from trainlib._training.history import FILLED_IN, History
from trainlib._training.history_rows import IN_MEMORY, RowSpool
from trainlib.result import Result


def begin(path: Path, **facts) -> History:
    return History(
        trial_id="a", experiment_id="1", config={}, **{"newest_iteration": 0, "rows": RowSpool(path), **facts}
    )


def report(history: History, iteration: int, **metrics: float) -> dict:
    return history.add(Report(iteration, metrics, None, 0.0, 0.1))


def test_what_is_filled_in_is_told_apart_from_what_was_reported(tmp_path):
    history = begin(tmp_path / "rows")
    history.attempt_starts(0)
    history.workers_started(WorkerFacts("n", "127.0.0.1", "h", 1))
    result = report(history, 1, loss=1.0)
    assert result.keys() - FILLED_IN == {"loss"}
    assert result.keys() >= FILLED_IN


def test_a_training_that_another_process_began_has_trained_as_long_as_that(tmp_path):
    history = begin(tmp_path / "rows", newest_iteration=3, seconds=600.0)
    history.attempt_starts(3)
    assert 600.0 <= report(history, 4, loss=1.0)["time_total_s"] < 660.0


LONG = 4 * IN_MEMORY + 10


def test_a_short_training_needs_no_file(tmp_path):
    history = begin(tmp_path / "rows")
    for iteration in range(1, IN_MEMORY):
        report(history, iteration, loss=1.0)
    assert len(Result(history=history.rows()).metrics_dataframe) == IN_MEMORY - 1
    assert list(tmp_path.iterdir()) == []


def test_the_rows_of_a_long_training_are_complete_and_as_they_were_reported(tmp_path):
    """Whole numbers stay whole, infinity and what is not a number too, and what a report lacked is not a number."""
    history = begin(tmp_path / "rows")
    for iteration in range(1, LONG + 1):
        odd = {"sometimes": float("inf")} if iteration == 7 else {}
        report(history, iteration, step=iteration, loss=float("nan") if iteration == 5 else 0.1 * iteration, **odd)
    frame = Result(history=history.rows()).metrics_dataframe
    assert frame["training_iteration"].tolist() == frame["step"].tolist() == list(range(1, LONG + 1))
    assert frame["step"].dtype.kind == "i"
    assert frame["loss"].isna().sum() == 1
    assert frame["loss"][LONG - 1] == 0.1 * LONG
    assert frame["sometimes"].notna().sum() == 1
    assert frame["sometimes"][6] == float("inf")
    assert {"timestamp", "time_this_iter_s", "time_total_s"} <= set(frame.columns)


def test_an_iteration_that_a_retry_repeats_counts_once(tmp_path):
    history = begin(tmp_path / "rows")
    for first, last, value in ((1, LONG, 0.0), (LONG - 300, LONG - 100, 1.0), (LONG - 200, LONG - 150, 2.0)):
        history.attempt_starts(first - 1)
        for iteration in range(first, last + 1):
            report(history, iteration, loss=value)
    rows = history.rows()
    assert [row["training_iteration"] for row in rows] == list(range(1, LONG + 1))
    values = [row["loss"] for row in rows]
    assert (values.count(1.0), values.count(2.0)) == (150, 51)
    assert values[LONG - 201 : LONG - 150] == [2.0] * 51


def test_a_result_stays_what_it_was_and_travels_without_the_file(tmp_path):
    history = begin(tmp_path / "rows")
    for iteration in range(1, LONG):
        report(history, iteration, loss=1.0)
    before = history.rows()
    report(history, LONG - 1, loss=2.0)
    report(history, LONG, loss=2.0)
    assert len(history.rows()) == len(before) + 1 == LONG
    assert before[-1]["loss"] == 1.0
    copy = pickle.loads(pickle.dumps(Result(history=before)))
    (tmp_path / "rows").unlink()
    assert len(copy.metrics_dataframe) == LONG - 1
    with pytest.raises(FileNotFoundError, match=r"kept in .*rows, which is gone. MLflow has them too"):
        _ = Result(history=before).metrics_dataframe


def test_another_process_goes_on_with_what_a_killed_one_left(tmp_path):
    """The file ends in half a line, and lacks what the killed process had in memory. The registry has that."""
    path = tmp_path / "rows"
    history = begin(path)
    for iteration in range(1, LONG + 1):
        report(history, iteration, step=iteration)
    with open(path, "a") as file:
        file.write('{"step": 1, "training_it')
    earlier = [{"step": float(iteration), "training_iteration": iteration} for iteration in range(1, LONG + 1)]
    history = begin(path, rows=RowSpool(path, earlier))
    for iteration in range(LONG - 2, LONG + IN_MEMORY):
        report(history, iteration, step=iteration)
    rows = history.rows()
    assert [row["step"] for row in rows] == list(range(1, LONG + IN_MEMORY))
    without_clock = [row["training_iteration"] for row in rows if "timestamp" not in row]
    assert without_clock == list(range(4 * IN_MEMORY + 1, LONG - 2))


def test_on_a_full_disk_rows_stay_in_memory(tmp_path):
    folder = tmp_path / "folder"
    folder.write_text("a file where the folder should be")
    history = begin(folder / "rows")
    for iteration in range(1, LONG + 1):
        report(history, iteration, step=iteration)
    assert len(history.rows()) == LONG
    folder.unlink()
    assert len(history.rows()) == LONG
    for iteration in range(LONG + 1, LONG + IN_MEMORY + 1):
        report(history, iteration, step=iteration)
    assert (folder / "rows").exists()
    assert [row["step"] for row in history.rows()] == list(range(1, LONG + IN_MEMORY + 1))


def test_the_result_of_a_training_with_nothing_left_to_report_is_its_last_one(tmp_path):
    """As after a kill that came between the last checkpoint and the end."""
    history = begin(tmp_path / "rows", newest_iteration=2, rows=RowSpool(tmp_path / "rows", earlier_rows()))
    assert history.finished() == {
        "training_iteration": 2,
        "loss": 0.25,
        "trial_id": "a",
        "experiment_id": "1",
        "config": {},
        "done": True,
    }
    assert begin(tmp_path / "none").finished() == {}


def earlier_rows() -> list[dict]:
    return [{"training_iteration": 1, "loss": 0.5}, {"training_iteration": 2, "loss": 0.25}]
