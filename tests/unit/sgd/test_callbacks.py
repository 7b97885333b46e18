"""RaySGD's callbacks and what they write."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from trainlib import sgd
from trainlib.callbacks import Trial
from trainlib.sgd.callbacks import JsonLoggerCallback, SGDCallback, TBXLoggerCallback


def test_they_are_found_in_both_places():
    assert sgd.SGDCallback is SGDCallback
    assert sgd.JsonLoggerCallback is JsonLoggerCallback
    assert sgd.TBXLoggerCallback is TBXLoggerCallback


def test_a_callback_hears_start_results_of_all_ranks_and_end(tmp_path):
    heard = []

    class Heard(SGDCallback):
        def start_training(self, logdir, **info):
            heard.append((logdir, info["config"]))

        def handle_result(self, results, **info):
            heard.append((results, info["iteration"]))

        def finish_training(self, error=False, **info):
            heard.append(error)

    trial = Trial("a1", "TorchTrainer", {"lr": 0.1}, str(tmp_path), "run")
    callback = Heard()
    about = {"iteration": 1, "trials": [trial], "trial": trial}
    callback.on_trial_start(**about)
    callback.on_rank_results(**about, results=[{"a": 1}, {"a": 2}])
    callback.on_trial_complete(**about)
    callback.on_trial_error(**about)
    assert heard == [(str(tmp_path), {"lr": 0.1}), ([{"a": 1}, {"a": 2}], 1), False, True]


@pytest.mark.parametrize(("ranks", "logged"), [(0, [0]), ([1], [1]), (None, [0, 1])])
def test_the_json_file_is_valid_at_any_time(tmp_path, ranks, logged):
    callback = JsonLoggerCallback(workers_to_log=ranks)
    callback.start_training(str(tmp_path / "run_001"))
    file = tmp_path / "run_001" / "results.json"
    expected: list = []
    assert json.loads(file.read_text()) == expected
    for epoch in range(3):
        callback.handle_result([{"epoch": epoch, "rank": rank} for rank in range(2)])
        expected.append([{"epoch": epoch, "rank": rank} for rank in logged])
        assert json.loads(file.read_text()) == expected
    assert callback.log_path == file


def test_the_json_file_is_valid_whatever_is_reported(tmp_path):
    callback = JsonLoggerCallback()
    callback.start_training(str(tmp_path))
    nan = float("nan")
    callback.handle_result([{"loss": nan, "val": {"best": -math.inf, 3: [1, nan]}, "array": np.array([1.5, nan])}])
    callback.handle_result([{"loss": np.float32("nan"), "number": np.int64(2), "other": Path("a")}])

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    assert json.loads((tmp_path / "results.json").read_text(), parse_constant=refuse) == [
        [{"loss": None, "val": {"best": None, "3": [1, None]}, "array": [1.5, None]}],
        [{"loss": None, "number": 2, "other": repr(Path("a"))}],
    ]


def test_each_run_has_a_file_of_its_own(tmp_path):
    callback = JsonLoggerCallback(filename="mine.json")
    for run in ("run_001", "run_002"):
        callback.start_training(str(tmp_path / run))
        callback.handle_result([{"run": run}])
        callback.finish_training()
    assert json.loads((tmp_path / "run_001" / "mine.json").read_text()) == [[{"run": "run_001"}]]
    assert json.loads((tmp_path / "run_002" / "mine.json").read_text()) == [[{"run": "run_002"}]]


def test_a_worker_that_is_not_there_cannot_be_logged(tmp_path):
    callback = TBXLoggerCallback(worker_to_log=2)
    callback.start_training(str(tmp_path))
    with pytest.raises(ValueError, match="workers_to_log names worker 2, but there are only 2"):
        callback.handle_result([{}, {}])
