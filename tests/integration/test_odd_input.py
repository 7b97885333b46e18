"""Odd names and values go through all layers: Prefect, Ray, MLflow, and back."""

from __future__ import annotations

import contextlib
import io
import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from trainlib import Checkpoint, DataParallelTrainer, RunConfig, session
from trainlib._registry.logged_models import read_checkpoints
from trainlib._registry.models import register, select
from trainlib._registry.names import stored_name
from trainlib.callbacks import JsonLoggerCallback, LoggerCallback


class Odd:
    """Looks like an array and a date, is neither, and does not even say what it is."""

    def tolist(self, depth):
        raise AssertionError

    isoformat = tolist

    def __repr__(self) -> str:
        raise RuntimeError("not ready")

    def __eq__(self, other) -> bool:
        return type(other).__name__ == "Odd"

    __hash__ = object.__hash__


ODD = ["/acc", "a//b", "loss/", "..", "", "recall@10", "recall_10", "recall at 10", "x" * 300, "gain%"]
CONFIG = {
    "": 1,
    "a//b": 2,
    "a": {"b": 3},
    "a.b": 4,
    "text": "x" * 1_000_000,
    "number": 10**400,
    "password": "correct horse",
    "by shape": {(1, 2): 3},
}

# Numbers, by the names that they have in MLflow, and what is none.
NUMBERS = {"val/acc": 0.25, "val/top/5": 0.5, "scalar": 0.75, "one": 3.0}
NESTED = {"val": {"acc": 0.25, "top": {"5": np.float32(0.5)}, "phase": "warm-up"}, "scalar": np.float64(0.75)}
OTHERS = {"best": None, "tuple": (64, "relu"), "day": date(2026, 1, 31), "unstorable": {1, 2}}
ODDER = {"by shape": {(1, 2): "warm-up"}, "odd": Odd()}
ARRAYS = {"one": np.array([3]), "per class": np.array([0.5, 1.0])}


class Seen(LoggerCallback):
    def __init__(self) -> None:
        self.results: list[dict] = []

    def log_trial_result(self, iteration, trial, result):
        self.results.append(result)


def train_func(config: dict) -> dict:
    many = {f"metric {number}": number / 7 for number in range(300)}
    odd = {name: float(index) for index, name in enumerate(ODD)}
    print("a line of the function")
    session.report(
        {**odd, **many, "acc@1": 0.5, **NESTED, **OTHERS, **ODDER, **ARRAYS},
        checkpoint=Checkpoint.from_dict({"step": 0}),
    )
    return {**config, "text": len(config["text"])}


@pytest.fixture(scope="module")
def ran():
    seen, shown = Seen(), io.StringIO()
    with contextlib.redirect_stderr(shown):
        result = DataParallelTrainer(
            train_func,
            train_loop_config=CONFIG,
            run_config=RunConfig(name="odd input", callbacks=[seen, JsonLoggerCallback()]),
        ).fit()
    return result, seen.results, shown.getvalue()


@pytest.fixture(scope="module")
def trained(ran):
    return ran[0]


def test_the_function_gets_the_config_as_it_was_passed(trained):
    assert trained.returned == [{**CONFIG, "text": 1_000_000}]


def test_mlflow_has_every_metric_and_every_param(trained, registry):
    run = registry.get_run(trained.run_id)
    assert {name: run.data.metrics[name] for name in NUMBERS} == NUMBERS
    odd = [value for name, value in run.data.metrics.items() if "metric " not in name and name not in NUMBERS]
    assert sorted(odd) == [
        0.0,
        0.5,
        *(float(index) for index in range(1, len(ODD))),
    ]
    assert len(run.data.metrics) == len(ODD) + 300 + 1 + len(NUMBERS)
    values = list(run.data.params.values())
    assert {"1", "2", "3", "4"} <= set(values)
    assert run.data.params["password"] == "********"
    assert not [value for value in values if "correct horse" in value]


def test_metrics_come_back_by_the_names_that_they_were_reported_with(trained):
    assert {name: trained.metrics[name] for name in ODD} == {name: float(index) for index, name in enumerate(ODD)}


def test_values_of_any_kind_come_back_as_they_were_reported(ran):
    result, (seen,), _ = ran
    for found in (result.metrics, seen):
        assert {name: found[name] for name in (*NESTED, *OTHERS, *ODDER)} == {**NESTED, **OTHERS, **ODDER}
        assert {name: found[name].tolist() for name in ARRAYS} == {"one": [3], "per class": [0.5, 1.0]}
        assert type(found["scalar"]) is type(found["val"]["top"]["5"]) is float
    (row,) = result.metrics_dataframe.to_dict("records")
    assert {name: row[name] for name in ("val/acc", "val/phase", "tuple", "config/a/b")} == {
        "val/acc": 0.25,
        "val/phase": "warm-up",
        "tuple": (64, "relu"),
        "config/a/b": 3,
    }
    assert row["config"] == result.metrics["config"] == result.config == CONFIG


def test_files_have_everything_but_secrets(trained):
    folder = trained.log_dir
    (line,) = Path(folder, "result.json").read_text().splitlines()
    written = json.loads(line)
    assert written["per class"] == [0.5, 1.0]
    assert (written["val"]["phase"], written["by shape"], written["odd"]) == ("warm-up", {"(1, 2)": "warm-up"}, "<Odd>")
    params = json.loads(Path(folder, "params.json").read_text())
    assert params == written["config"]
    assert (params["by shape"], params["password"]) == ({"(1, 2)": 3}, "********")
    header, values = (folder / "progress.csv").read_text().splitlines()
    assert '"by shape/(1, 2)",odd,' in header
    assert ",warm-up,<Odd>," in values
    logs = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    assert not [file.name for file in logs if b"correct horse" in file.read_bytes()]


def test_what_is_no_number_is_a_tag_and_one_line_says_what_cannot_be_stored(ran, registry):
    result, _, shown = ran
    tags = registry.get_run(result.run_id).data.tags
    assert {name: text for name, text in tags.items() if name.startswith("reported.")} == {
        "reported.val/phase": "warm-up",
        "reported.best": "null",
        "reported.tuple": '[64, "relu"]',
        stored_name("reported.by shape/(1, 2)"): "warm-up",
        "reported.day": '"2026-01-31"',
        "reported.per class": "[0.5, 1.0]",
    }
    (note,) = [line for line in shown.splitlines() if "cannot store" in line]
    assert "MLflow cannot store 'unstorable' (a set), 'odd' (a Odd) of what was reported" in note


def test_a_checkpoint_has_all_metrics_and_can_be_registered_by_any_of_them(trained, registry):
    experiment = registry.get_run(trained.run_id).info.experiment_id
    (saved,) = read_checkpoints(registry, experiment, trained.run_id).saved
    assert len(saved.metrics) == len(ODD) + 300 + 1 + len(NUMBERS)
    version = register(select([trained.run_id], "acc@1", "max"), "odd model")
    assert version.promoted
    again = register(select([trained.run_id], "acc@1", "max"), "odd model")
    assert (again.promoted, again.previous_score) == (False, 0.5)
