"""XGBoost and LightGBM train one model on the rows of all workers, which is the one that a single process would train."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.integration.leftovers import assert_nothing_left_behind
from tests.longest import LONGEST_S
from trainlib import (
    CheckpointConfig,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    session,
)
from trainlib._boosting import library as boosting
from trainlib._boosting.table import read_tables
from trainlib._stacks import stacks_of
from trainlib.callbacks import Callback
from trainlib.errors import DataError
from trainlib.lightgbm import LightGBMCheckpoint, LightGBMTrainer, get_network_params
from trainlib.lightgbm import RayTrainReportCallback as ReportLightGBM
from trainlib.xgboost import RayTrainReportCallback as ReportXGBoost
from trainlib.xgboost import XGBoostCheckpoint, XGBoostTrainer

ROUNDS = 8
KILLED_AFTER = 5
"""Checkpoints are saved every second round: the newest one is that of round 4."""
FEATURES = [f"f{index}" for index in range(6)]


def table(rows: int, seed: int, classes: int = 2) -> pd.DataFrame:
    """Features with few values, so that a worker's share has the same bins as the whole."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 12, size=(rows, len(FEATURES))).astype("float32"), columns=FEATURES)
    score = frame["f0"] - frame["f1"] + frame["f2"] * frame["f3"] / 8 + rng.normal(size=rows)
    frame["target"] = pd.qcut(score, classes, labels=False).astype("int64")
    return frame


TRAIN, VALID = table(2001, seed=1), table(601, seed=2)
"""Rows that two workers cannot divide equally."""


def bare_xgboost(params: dict[str, Any], rounds: int, weights: Any = None) -> tuple[Any, dict[str, list[float]]]:
    import xgboost

    train = xgboost.QuantileDMatrix(TRAIN[FEATURES], TRAIN["target"], weight=weights)
    valid = xgboost.QuantileDMatrix(VALID[FEATURES], VALID["target"], ref=train)
    seen: dict[str, Any] = {}
    evals = [(train, "train"), (valid, "valid")]
    model = xgboost.train(params, train, rounds, evals=evals, evals_result=seen, verbose_eval=False)
    return model, {f"{name}-{metric}": seen[name][metric] for name in seen for metric in seen[name]}


def bare_lightgbm(params: dict[str, Any], rounds: int, weights: Any = None) -> tuple[Any, dict[str, list[float]]]:
    import lightgbm

    train = lightgbm.Dataset(TRAIN[FEATURES], TRAIN["target"], weight=weights, params=params)
    valid = lightgbm.Dataset(VALID[FEATURES], VALID["target"], reference=train, params=params)
    seen: dict[str, Any] = {}
    model = lightgbm.train(
        params,
        train,
        rounds,
        valid_sets=[train, valid],
        valid_names=["train", "valid"],
        callbacks=[lightgbm.record_evaluation(seen)],
    )
    return model, {f"{name}-{metric}": seen[name][metric] for name in seen for metric in seen[name]}


def predict_xgboost(model: Any, rows: pd.DataFrame) -> np.ndarray:
    import xgboost

    return model.predict(xgboost.DMatrix(rows))


@dataclass(frozen=True)
class Library:
    """What differs between the two."""

    trainer: Any
    checkpoint: type
    params: dict[str, Any]
    bare: Callable[..., tuple[Any, dict[str, list[float]]]]
    predict: Callable[[Any, pd.DataFrame], np.ndarray]
    rounds_of: Callable[[Any], int]
    best_round_of: Callable[[Any], int]
    """Of a model whose training was stopped early, from 1."""
    multiclass: dict[str, Any]
    counting: dict[str, Any]
    tolerance: dict[str, float] = field(default_factory=dict)
    """For metrics that are no means over rows, and so are not exact when they are made of the workers'."""


XGBOOST = Library(
    trainer=XGBoostTrainer,
    checkpoint=XGBoostCheckpoint,
    params={"objective": "binary:logistic", "eval_metric": ["logloss", "error"], "max_depth": 3, "eta": 0.3},
    bare=bare_xgboost,
    predict=predict_xgboost,
    rounds_of=lambda model: model.num_boosted_rounds(),
    best_round_of=lambda model: model.best_iteration + 1,
    multiclass={"objective": "multi:softprob", "num_class": 3, "max_bin": 64},
    counting={"objective": "count:poisson", "max_depth": 3, "eta": 0.9},
)
LIGHTGBM = Library(
    trainer=LightGBMTrainer,
    checkpoint=LightGBMCheckpoint,
    params={
        "objective": "binary",
        "metric": ["binary_logloss", "binary_error", "auc"],
        "num_leaves": 8,
        "min_data_in_bin": 1,
        "verbosity": -1,
    },
    bare=bare_lightgbm,
    predict=lambda model, rows: model.predict(rows),
    rounds_of=lambda model: model.current_iteration(),
    best_round_of=lambda model: model.current_iteration(),
    multiclass={"objective": "multiclass", "num_class": 3},
    counting={
        "objective": "poisson",
        "num_leaves": 8,
        "min_data_in_bin": 1,
        "eta": 0.9,
        "verbosity": -1,
        "max_depth": None,
    },
    tolerance={"train-auc": 0.01, "valid-auc": 0.01},
)
BOTH = pytest.mark.parametrize("library", [XGBOOST, LIGHTGBM], ids=["xgboost", "lightgbm"])


class FindRankOne(Callback):
    """Writes down which process rank 1 is, once it has reported."""

    def __init__(self, name: str, pid: Path) -> None:
        self.name = name
        self.pid = pid

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict[str, Any], **info: Any) -> None:
        if result["training_iteration"] == 1:
            ((_, text),) = stacks_of(self.name)
            found = re.search(r"rank 1 \(.*?pid (\d+)\)", text)
            assert found is not None, text
            self.pid.with_suffix(".part").write_text(found[1])
            self.pid.with_suffix(".part").rename(self.pid)


@dataclass(frozen=True)
class KillRankOne:
    """Kills that process once, after a round. Whether to stop is asked while both ranks wait in the round's report."""

    pid: Path

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        killed = self.pid.with_suffix(".killed")
        if result["training_iteration"] == KILLED_AFTER and not killed.exists():
            deadline = time.monotonic() + LONGEST_S
            while not self.pid.exists():
                assert time.monotonic() < deadline, "nobody has found rank 1"
                time.sleep(0.05)
            os.kill(int(self.pid.read_text()), signal.SIGKILL)
            killed.touch()
        return False


@BOTH
def test_a_training_that_loses_a_worker_ends_with_the_model_and_the_curve_of_one_process(
    library, registry, curve, tmp_path
):
    name = f"{library.trainer.__name__} in {tmp_path.name}"
    pid = tmp_path / "rank 1.pid"
    result = library.trainer(
        params=library.params,
        label_column="target",
        datasets={"train": TRAIN, "valid": VALID},
        num_boost_round=ROUNDS,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(
            name=name,
            callbacks=[FindRankOne(name, pid)],
            stop=KillRankOne(pid),
            failure_config=FailureConfig(max_failures=1),
            checkpoint_config=CheckpointConfig(checkpoint_frequency=2),
        ),
    ).fit()

    assert result.attempts == 2
    tags = registry.get_run(result.run_id).data.tags
    assert json.loads(tags["trainlib.attempt.001"]).items() >= {"outcome": "worker", "rank": 1}.items()
    assert '"resumed_from": "checkpoint_000001"' in tags["trainlib.attempt.002"], "that of round 4"

    assert [sorted(of_ranks) for of_ranks in result.rows["valid"]] == [[300, 301]] * 2, "by both attempts"
    model, seen = library.bare(library.params, ROUNDS)
    assert set(seen) <= set(result.metrics)
    for metric, values in seen.items():
        steps, reported = zip(*curve(result.run_id, metric), strict=True)
        assert list(steps) == list(range(1, ROUNDS + 1)), "each round once"
        np.testing.assert_allclose(reported, values, atol=library.tolerance.get(metric, 1e-4), err_msg=metric)
    checkpoint = result.checkpoint
    assert isinstance(checkpoint, library.checkpoint)
    trained = checkpoint.get_model()
    assert library.rounds_of(trained) == ROUNDS
    np.testing.assert_allclose(
        library.predict(trained, VALID[FEATURES]), library.predict(model, VALID[FEATURES]), atol=1e-4
    )
    assert registry.get_run(result.run_id).data.params.items() >= {"label_column": "target"}.items()
    assert_nothing_left_behind()


@BOTH
def test_a_class_that_one_share_lacks_is_learned_and_training_goes_on_from_a_checkpoint(library, registry, curve):
    rows = table(600, seed=3, classes=3).sort_values("target", ignore_index=True)
    trainer = library.trainer(
        params=library.multiclass,
        label_column="target",
        datasets={"train": rows, "hold-out: 2024 q1": rows.head(100)},
        num_boost_round=6,
        scaling_config=ScalingConfig(num_workers=2),
    )
    result = trainer.fit()
    predicted = library.predict(result.checkpoint.get_model(), rows[FEATURES])
    assert (predicted.argmax(axis=1) == rows["target"]).mean() > 0.8
    assert {"train", "hold-out: 2024 q1"} <= {metric.rpartition("-")[0] for metric in result.metrics}, "as it is called"

    longer = trainer.copy_with(
        num_boost_round=100,
        resume_from_checkpoint=result.checkpoint,
        run_config=RunConfig(stop={"training_iteration": 2}),
    ).fit()
    assert longer.metrics["training_iteration"] == 2
    assert library.rounds_of(longer.checkpoint.get_model()) == 8, "a training that is stopped has its model"
    metric = next(name for name in longer.metrics if name.startswith("train-"))
    assert [step for step, _ in curve(longer.run_id, metric)] == [1, 2], "which is no second point of a metric"
    ((_, metrics),) = longer.best_checkpoints
    assert metrics[metric] == longer.metrics[metric]
    (saved,) = registry.search_logged_models(
        [registry.get_run(longer.run_id).info.experiment_id], f"source_run_id = '{longer.run_id}'"
    )
    assert {point.key for point in saved.metrics} >= {metric}, "MLflow lists the metrics with the checkpoint"
    with pytest.raises(TrainingFailedError, match=r"The checkpoint already has 6 rounds. Set num_boost_round above 6"):
        trainer.copy_with(resume_from_checkpoint=result.checkpoint).fit()


@BOTH
def test_weights_are_those_of_one_process_whatever_the_order_of_rows_and_columns_and_early_stopping_ends_after_the_best_round(
    library, monkeypatch
):
    # Each rank has other labels, and all of them are above 0: LightGBM cannot begin with a rank that has nothing else.
    rows = TRAIN.assign(target=TRAIN["target"] + 1).sort_values("target", ignore_index=True)
    monkeypatch.setitem(globals(), "TRAIN", rows)
    weights, params = np.arange(len(TRAIN)) % 3 + 0.5, library.counting
    result = library.trainer(
        params=params,
        label_column="target",
        datasets={"train": TRAIN.assign(w=weights), "valid": VALID[VALID.columns[::-1]]},
        num_boost_round=100,
        dmatrix_params={"train": {"weight": "w"}},
        early_stopping_rounds=2,
        scaling_config=ScalingConfig(num_workers=2),
    ).fit()
    _, seen = library.bare(params, 4, weights=weights)
    reported = result.metrics_dataframe
    for metric, values in seen.items():
        np.testing.assert_allclose(reported[metric][:4], values, atol=1e-4, err_msg=metric)
    (judged,) = [metric for metric in seen if metric.startswith("valid-")]
    best = int(reported[judged].argmin()) + 1
    assert (len(reported), result.metrics["training_iteration"]) == (best + 2, best + 2)
    assert library.best_round_of(result.checkpoint.get_model()) == best
    assert result.metrics[judged] == reported[judged][best - 1], "the model is ranked by what it was measured at"


def with_one_label_missing() -> pd.DataFrame:
    rows = TRAIN.copy()
    rows["target"] = rows["target"].astype("float64")
    rows.loc[1500, "target"] = None
    return rows


@pytest.mark.parametrize(
    ("library", "error", "message", "changes"),
    [
        (
            XGBOOST,
            DataError,
            r"'target' of the dataset 'train' is missing in 1 of the 1000 rows of rank \d",
            {"train": with_one_label_missing},
        ),
        (
            LIGHTGBM,
            DataError,
            "binary needs labels that are 0 or 1, but the label 'target' of the dataset 'train' has",
            {"train": lambda: table(400, 4, 10)},
        ),
        (XGBOOST, DataError, r"'valid' .* has only 1 row\(s\) for 2 workers", {"valid": lambda: VALID.head(1)}),
        (
            LIGHTGBM,
            DataError,
            "the dataset 'valid' lacks 'f3', which 'train' has",
            {"valid": lambda: VALID.drop(columns="f3")},
        ),
    ],
    ids=["label missing", "objective", "too few rows", "feature missing"],
)
def test_what_only_the_workers_can_see_is_said_in_plain_words(library, error, message, changes):
    trainer = library.trainer(
        params=library.params,
        label_column="target",
        datasets={"train": lambda: TRAIN, **changes},
        scaling_config=ScalingConfig(num_workers=2),
    )
    with pytest.raises((TrainingFailedError, DataError), match=message) as caught:
        trainer.fit()
    assert isinstance(caught.value, error) or isinstance(caught.value.__cause__, error), repr(caught.value.__cause__)


def misfits(library: boosting.Library, params: dict[str, Any]) -> list[str]:
    """What is wrong with labels, one after the other: the workers go on."""
    said = []
    for label in ("decile", "gap"):
        try:
            read_tables({"params": params, "label_column": label}, library)
        except DataError as error:
            said.append(str(error))
    return said


def uses_the_collective(config: dict[str, Any]) -> tuple[tuple[int, int, float], list[str]]:
    import xgboost
    from xgboost import collective

    from trainlib.xgboost._library import LIBRARY

    rank = session.get_world_rank()
    rows = TRAIN.iloc[rank :: session.get_world_size()]
    matrix = xgboost.DMatrix(rows[FEATURES], rows["target"])
    xgboost.train(
        XGBOOST.params,
        matrix,
        config["rounds"],
        evals=[(matrix, "train")],
        callbacks=[ReportXGBoost(metrics={"loss": "train-logloss"}, frequency=3)],
        verbose_eval=False,
    )
    total = collective.allreduce(np.array([float(len(rows))]), collective.Op.SUM)
    found = collective.get_rank(), collective.get_world_size(), float(total[0])
    return found, misfits(LIBRARY, XGBOOST.params)


def uses_the_network(config: dict[str, Any]) -> tuple[tuple[int, float], list[str]]:
    import lightgbm

    from trainlib.lightgbm._library import LIBRARY

    rows = TRAIN.iloc[session.get_world_rank() :: session.get_world_size()]
    params = {**LIGHTGBM.params, **get_network_params()}
    dataset = lightgbm.Dataset(rows[FEATURES], rows["target"], params=params)
    model = lightgbm.train(
        params,
        dataset,
        config["rounds"],
        valid_sets=[dataset],
        valid_names=["train"],
        callbacks=[ReportLightGBM(metrics={"loss": "train-binary_logloss"}, frequency=3)],
    )
    found = get_network_params()["time_out"], float(model.predict(VALID[FEATURES]).sum())
    return found, misfits(LIBRARY, LIGHTGBM.params)


def test_a_training_function_of_ones_own_finds_the_workers_connected_and_its_rounds_are_reported(curve):
    """With the callbacks that Ray's functions have."""
    bad = TRAIN.assign(decile=np.arange(len(TRAIN)) % 10, gap=with_one_label_missing()["target"])
    rest = {
        "train_loop_config": {"rounds": 4},
        "datasets": {"train": bad},
        "scaling_config": ScalingConfig(num_workers=2),
    }
    xgboost = XGBoostTrainer(uses_the_collective, **rest).fit()
    assert [found for found, _ in xgboost.returned] == [(0, 2, 2001.0), (1, 2, 2001.0)]
    expected = predict_xgboost(bare_xgboost(XGBOOST.params, 4)[0], VALID[FEATURES])
    np.testing.assert_allclose(predict_xgboost(xgboost.checkpoint.get_model(), VALID[FEATURES]), expected, atol=1e-3)
    lightgbm = LightGBMTrainer(uses_the_network, **rest).fit()
    ((time_out, first), _), ((_, second), _) = lightgbm.returned
    assert (time_out, first) == (30, second), "half an hour by default, and the same model on both ranks"
    for result, need in (
        (xgboost, "binary:logistic needs labels that are between 0 and 1"),
        (lightgbm, "binary needs"),
    ):
        said = [each for _, errors in result.returned for each in errors]
        assert len([each for each in said if f"the objective {need}" in each and "the label 'decile'" in each]) == 2
        (gap,) = [each for each in said if "the label 'gap'" in each]
        assert re.search(r"of the dataset 'train' is missing in 1 of the 1000 rows of rank \d", gap)
    for result, callback, rounds_of in (
        (xgboost, ReportXGBoost, XGBOOST.rounds_of),
        (lightgbm, ReportLightGBM, LIGHTGBM.rounds_of),
    ):
        assert [step for step, _ in curve(result.run_id, "loss")] == [1, 2, 3, 4], "each round once"
        assert [rounds_of(callback.get_model(each)) for each, _ in result.best_checkpoints] == [3, 4]
