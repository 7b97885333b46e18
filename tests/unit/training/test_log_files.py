"""The files in a training's folder: written behind its back, complete at its end, and never a reason to fail."""

from __future__ import annotations

import csv
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from trainlib._execution.worker import WorkerFacts
from trainlib._training import batch_writer
from trainlib._training.batch_writer import BatchWriter
from trainlib._training.log_files import LogFiles

CONFIG = {"lr": 0.1, "model": {"depth": 2}, "api_key": "sesame"}


def table(folder: Path) -> list[dict[str, str]]:
    with open(folder / "progress.csv", newline="") as file:
        return list(csv.DictReader(file))


def results(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]


def test_params_and_results_are_written_without_secrets(tmp_path):
    logs = LogFiles(tmp_path)
    logs.params(CONFIG)
    for iteration in (1, 2):
        logs.reported({"loss": 1 / iteration, "training_iteration": iteration, "config": CONFIG})
    logs.close()
    shown = {"lr": 0.1, "model": {"depth": 2}, "api_key": "********"}
    assert json.loads((tmp_path / "params.json").read_text()) == shown
    assert results(tmp_path) == [{"loss": 1 / i, "training_iteration": i, "config": shown} for i in (1, 2)]
    assert table(tmp_path)[1] == {
        "loss": "0.5",
        "training_iteration": "2",
        "config/lr": "0.1",
        "config/model/depth": "2",
        "config/api_key": "********",
    }
    assert "sesame" not in "".join(file.read_text() for file in tmp_path.iterdir())


def test_anything_can_be_reported(tmp_path):
    logs = LogFiles(tmp_path)
    logs.reported({"loss": np.float32(0.5), "note": "a, b\nc", "val": {"top": [1, 2]}, "none": None, "odd": {1}})
    logs.close()
    assert results(tmp_path) == [
        {"loss": 0.5, "note": "a, b\nc", "val": {"top": [1, 2]}, "none": None, "odd": "{1}", "config": {}}
    ]
    assert table(tmp_path)[0]["note"] == "a, b\nc"
    assert table(tmp_path)[0]["val/top"] == "[1, 2]"


class Odd:
    """Looks like an array and a date, and is neither."""

    def tolist(self, depth):
        raise AssertionError

    isoformat = property(lambda self: 1 / 0)

    def __repr__(self) -> str:
        raise RuntimeError("not ready")


def test_no_config_and_no_result_is_too_odd_to_be_written(tmp_path):
    circle: dict = {"lr": 0.1}
    circle["again"] = circle
    config = {"by shape": {(1, 2): 3, 4: 5}, "odd": Odd()}
    logs = LogFiles(tmp_path)
    logs.params(config)
    for loss in (1.0, {(1, 2): 0.5}, Odd(), circle["again"] | {"again": None}):
        logs.reported({"loss": loss, "config": config})
    logs.close()
    shown = {"by shape": {"(1, 2)": 3, "4": 5}, "odd": "<Odd>"}
    assert json.loads((tmp_path / "params.json").read_text()) == shown
    assert results(tmp_path) == [
        {"loss": loss, "config": shown} for loss in (1.0, {"(1, 2)": 0.5}, "<Odd>", {"lr": 0.1, "again": None})
    ]
    assert [row["loss"] for row in table(tmp_path)] == ["1.0", "", "<Odd>", ""]
    assert table(tmp_path)[1]["loss/(1, 2)"] == "0.5"
    assert logs.remarks() == []
    logs.params(circle)  # a trainer refuses it before
    assert "RecursionError" in logs.remarks()[0]


def test_a_column_that_comes_later_is_a_column_of_all_rows(tmp_path):
    for row in ({"loss": 1.0}, {"loss": 0.5, "accuracy": 0.9}, {"f1": 0.8, "loss": 0.25}):
        logs = LogFiles(tmp_path)  # as in a process that continues the training
        logs.reported(row)
        logs.close()
    assert table(tmp_path) == [
        {"loss": "1.0", "accuracy": "", "f1": ""},
        {"loss": "0.5", "accuracy": "0.9", "f1": ""},
        {"loss": "0.25", "accuracy": "", "f1": "0.8"},
    ]


def test_half_a_line_of_a_killed_process_does_not_spoil_the_next_one(tmp_path):
    (tmp_path / "result.json").write_text('{"training_iteration": 1}\n{"training_it')
    logs = LogFiles(tmp_path)
    logs.reported({"training_iteration": 2})
    logs.close()
    assert [row["training_iteration"] for row in results(tmp_path)] == [1, 2]


def test_every_rank_has_a_log_even_if_it_prints_nothing(tmp_path):
    logs = LogFiles(tmp_path)
    workers = [WorkerFacts("node", "10.0.0.1", "host", pid) for pid in (7, 8)]
    for attempt in (1, 2):
        logs.workers_started(attempt, workers)
        logs.printed(1, f"hello {attempt} ä")
    logs.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rank_0.log", "rank_1.log"]
    assert (tmp_path / "rank_1.log").read_text().splitlines() == [
        "--- attempt 1 on host (10.0.0.1), pid 8 ---",
        "hello 1 ä",
        "--- attempt 2 on host (10.0.0.1), pid 8 ---",
        "hello 2 ä",
    ]


def test_files_that_a_callback_writes_are_left_to_it(tmp_path):
    logs = LogFiles(tmp_path, left_out=["result.json", "params.json"])
    logs.params(CONFIG)
    logs.reported({"loss": 1.0})
    logs.close()
    assert [file.name for file in tmp_path.iterdir()] == ["progress.csv"]


def test_a_disk_that_fails_is_a_remark_once(tmp_path):
    logs = LogFiles(tmp_path / "gone")
    logs.params({})
    logs.reported({"loss": 1.0})
    logs.close()
    (remark,) = logs.remarks()
    assert f"the logs in {tmp_path / 'gone'} are not complete: " in remark
    assert logs.remarks() == []


def test_nothing_waits_for_a_disk_that_hangs(monkeypatch):
    monkeypatch.setattr(batch_writer, "MOST_WAITING", 2)
    monkeypatch.setattr(batch_writer, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr(batch_writer, "GATHER_S", 0.0)
    hangs, written = threading.Event(), []

    def write(items: list[int]) -> None:
        hangs.wait(10)
        written.extend(items)

    writer = BatchWriter(write, "test")
    started = time.monotonic()
    for number in range(20):
        writer.put(number)
    assert time.monotonic() - started < 5
    assert writer.dropped > 0
    hangs.set()
    writer.close()
    assert len(written) == 20 - writer.dropped
    assert written == sorted(written)


@pytest.mark.parametrize("gather", [0.0, 60.0])
def test_closing_writes_what_is_left_at_once(monkeypatch, gather):
    monkeypatch.setattr(batch_writer, "GATHER_S", gather)
    written: list[int] = []
    writer = BatchWriter(written.extend, "test")
    for round in range(2):  # it can go on after that
        writer.put(round)
        writer.close()
    assert written == [0, 1]


def test_a_disk_that_was_full_for_a_moment_costs_no_later_results(tmp_path, monkeypatch):
    logs = LogFiles(tmp_path)

    def report(iteration: int) -> None:
        logs.reported({"training_iteration": iteration})
        logs.close()

    report(1)
    with monkeypatch.context() as full:
        full.setattr("builtins.open", half_written)
        report(2)
    report(3)
    assert [each["training_iteration"] for each in results(tmp_path)] == [1, 3]
    assert "not complete" in logs.remarks()[0]


really_open = open


def half_written(file, mode="r", **options):
    """As ``open``, for a disk that has room for half a line."""
    opened = really_open(file, mode, **options)
    if mode == "a":
        opened.write('{"training_it')
        opened.close()
        raise OSError(28, "No space left on device")
    return opened
