"""What a training has reported so far."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from trainlib import _storage as storage
from trainlib._execution.events import Report
from trainlib._execution.worker import WorkerFacts
from trainlib._training.history import FILLED_IN, History
from trainlib._training.history_rows import IN_MEMORY, RowSpool, _line
from trainlib.result import Result


def begin(path: Path, **facts) -> History:
    known = {"config": {}, "newest_iteration": 0, "rows": RowSpool(path), **facts}
    return History(trial_id="a", experiment_id="1", **known)


def report(history: History, iteration: int, **metrics: float) -> dict:
    return history.add(Report(iteration, metrics, None, 0.0, 0.1))


def test_what_is_filled_in_is_told_apart_from_what_was_reported(tmp_path):
    history = begin(tmp_path / "rows")
    history.attempt_starts(0)
    history.workers_started(WorkerFacts("n", "127.0.0.1", "h", 1))
    result = report(history, 1, loss=1.0)
    assert result.keys() - FILLED_IN == {"loss"}
    assert result.keys() >= FILLED_IN


def test_a_nested_report_is_given_back_as_it_was_and_judged_by_flat_names(tmp_path):
    history = begin(tmp_path / "rows")
    reported = {"val": {"acc": 0.5, "phase": "warm-up"}, "best": None, "timestamp": 7.0}
    result = history.add(Report(1, reported, None, 3.0, 0.1))
    assert {name: result[name] for name in ("val", "best")} == {"val": {"acc": 0.5, "phase": "warm-up"}, "best": None}
    assert (history.judged["val/acc"], history.judged["timestamp"]) == (0.5, 3)
    assert history.values["val/acc"] == 0.5
    plain = history.add(Report(2, {"loss": 0.5}, None, 3.0, 0.1))
    assert history.judged is plain


def test_the_dataframe_has_all_that_is_filled_in_and_times_that_add_up(tmp_path):
    history = begin(tmp_path / "rows", config={"model": {"lr": 0.1}})
    for attempt, pid in ((1, 7), (2, 8)):
        history.attempt_starts(2 * attempt - 2)
        history.workers_started(WorkerFacts("n", "127.0.0.1", "h", pid))
        for iteration in (2 * attempt - 1, 2 * attempt):
            history.add(Report(iteration, {"val": {"acc": iteration}}, None, 1e9 + iteration, 0.1))
    result = Result(metrics=history.finished(), history=history.rows())
    frame = result.metrics_dataframe
    assert set(frame.columns) == FILLED_IN | {"val/acc", "config/model/lr"}
    assert frame["time_total_s"].tolist() == pytest.approx(frame["time_this_iter_s"].cumsum().tolist())
    assert frame["pid"].tolist() == [7, 7, 8, 8]
    assert frame["iterations_since_restore"].tolist() == [1, 2, 1, 2]
    assert frame["done"].tolist() == [False, False, False, True]
    for name in FILLED_IN - {"config"}:
        last = frame[name].tolist()[-1]
        assert last == result.metrics[name], name
    assert frame["config"].tolist() == [{"model": {"lr": 0.1}}] * 4


def test_values_of_all_kinds_come_back_from_the_file(tmp_path):
    history = begin(tmp_path / "rows")
    odd = {"tuple": (1, 2), "text": "ü\n", "none": None, "per class": np.array([0.5, 1.0]), "nested": {"list": [1]}}
    for iteration in range(1, LONG + 1):
        history.add(Report(iteration, {**odd, "step": iteration}, None, 0.0, 0.1))
    assert (tmp_path / "rows").exists()
    row = history.rows()[7]
    assert (row["tuple"], row["text"], row["none"], row["nested/list"], row["step"]) == ((1, 2), "ü\n", None, [1], 8)
    assert row["per class"].tolist() == [0.5, 1.0]


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


def test_another_process_finds_which_attempt_each_row_is_of(tmp_path):
    path = tmp_path / "rows"
    history = begin(path)
    for pid, first, last in ((7, 1, 400), (8, 301, 600)):
        history.attempt_starts(first - 1)
        history.workers_started(WorkerFacts("n", "127.0.0.1", "h", pid))
        for iteration in range(first, last + 1):
            report(history, iteration, loss=1.0)
    there = list(history.rows())
    assert [row["pid"] for row in there] == [7] * 300 + [8] * 300
    assert there[300]["iterations_since_restore"] == 1
    assert list(RowSpool(path).snapshot()) == there
    history = begin(path, newest_iteration=600)
    history.attempt_starts(550)
    history.workers_started(WorkerFacts("n", "127.0.0.1", "h", 9))
    report(history, 551, loss=1.0)
    assert [row["pid"] for row in history.rows()][549:552] == [8, 9, 8]
    assert path.read_text().count("127.0.0.1") == 3, "once for each attempt"


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
        "experiment_tag": "0",
        "config": {},
        "done": True,
    }
    assert begin(tmp_path / "none").finished() == {}


def earlier_rows() -> list[dict]:
    return [{"training_iteration": 1, "loss": 0.5}, {"training_iteration": 2, "loss": 0.25}]


def test_a_process_that_fails_before_its_first_report_gives_the_last_result_of_an_earlier_one(tmp_path):
    earlier = iter([{"loss": 0.5, "training_iteration": 1}, {"loss": 0.25, "training_iteration": 2}])
    history = begin(tmp_path / "rows", rows=RowSpool(tmp_path / "rows", earlier=earlier), config={"lr": 0.1})
    so_far = history.so_far()
    assert (so_far["loss"], so_far["training_iteration"], so_far["config"]) == (0.25, 2, {"lr": 0.1})
    assert history.finished() == {**so_far, "done": True}
    assert begin(tmp_path / "none").so_far() == begin(tmp_path / "none").finished() == {}


class Planted:
    """Notes that it was loaded."""

    loaded: ClassVar[list[bool]] = []

    def __reduce__(self):
        return Planted.loaded.append, (True,)


@pytest.mark.parametrize("given_away", ["rows", "."])
def test_rows_that_somebody_else_has_written_do_not_count(tmp_path, monkeypatch, given_away):
    """Some are pickles, which can run any code."""
    line = _line({"training_iteration": 1, "planted": Planted()})
    (tmp_path / "rows").write_text(f"{line}\n")
    is_own = storage.is_own
    foreign = (tmp_path / given_away).resolve()
    monkeypatch.setattr(storage, "is_own", lambda path: is_own(path) and path.resolve() != foreign)
    spool = RowSpool(tmp_path / "rows", earlier=[{"training_iteration": 1, "loss": 0.5}])
    assert [dict(each) for each in spool.snapshot()] == [{"training_iteration": 1, "loss": 0.5}]
    for iteration in range(2, 2 * IN_MEMORY):
        spool.add({"training_iteration": iteration, "loss": 0.5})
    assert len(list(spool.snapshot())) == 2 * IN_MEMORY - 1
    assert Planted.loaded == []
