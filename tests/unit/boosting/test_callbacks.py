"""RayTrainReportCallback reports each round once, with chosen metrics, and saves when it is asked to."""

from __future__ import annotations

import subprocess
import sys

import lightgbm
import numpy as np
import pytest
import xgboost

from tests.unit.boosting.test_early_stopping import Alone
from trainlib import session
from trainlib._serving.checkpoints import why_not_served
from trainlib.errors import InvalidArgumentError
from trainlib.lightgbm import RayTrainReportCallback as OfLightGBM
from trainlib.xgboost import RayTrainReportCallback as OfXGBoost

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)


@pytest.fixture
def alone():
    running = Alone()
    session.enter(running)
    yield running
    session.enter(None)


def train_xgboost(callback, rounds: int, **more):
    matrix = xgboost.DMatrix(ROWS, LABELS)
    params = {"objective": "binary:logistic", "eval_metric": ["logloss", "error"], "nthread": 1}
    evals = [(matrix, "train")]
    return xgboost.train(params, matrix, rounds, evals=evals, callbacks=[callback], verbose_eval=False, **more)


def train_lightgbm(callback, rounds: int, **more):
    params = {"objective": "binary", "metric": ["binary_logloss", "auc"], "verbosity": -1, "num_threads": 1}
    dataset = lightgbm.Dataset(ROWS, LABELS)
    sets = {"valid_sets": [dataset], "valid_names": ["train"]}
    return lightgbm.train({**params, **more.pop("params", {})}, dataset, rounds, callbacks=[callback], **sets, **more)


BOTH = pytest.mark.parametrize(
    ("callback", "train", "metric"),
    [(OfXGBoost, train_xgboost, "train-logloss"), (OfLightGBM, train_lightgbm, "train-binary_logloss")],
    ids=["xgboost", "lightgbm"],
)


@BOTH
def test_each_round_is_reported_once_and_the_model_is_saved_when_it_is_due(alone, callback, train, metric):
    train(callback(frequency=2), 5)
    assert [checkpoint is not None for _, checkpoint in alone.reports] == [False, True, False, True, True]
    assert all(len(metrics) == 2 and metric in metrics for metrics, _ in alone.reports)
    losses = [metrics[metric] for metrics, _ in alone.reports]
    assert losses == sorted(losses, reverse=True)
    last = alone.reports[-1][1]
    assert why_not_served(last.kind, last.path) is None
    rounds = [_rounds_of(callback.get_model(each)) for _, each in alone.reports if each is not None]
    assert rounds == [2, 4, 5]


def resumed_xgboost(rounds: int, *, fails_after: int = 0) -> None:
    """As the callback's docstring has it."""
    checkpoint = session.get_checkpoint()
    model = OfXGBoost.get_model(checkpoint) if checkpoint else None
    done = model.num_boosted_rounds() if model else 0
    train_xgboost(OfXGBoost(frequency=2), (fails_after or rounds) - done, xgb_model=model)


def resumed_lightgbm(rounds: int, *, fails_after: int = 0) -> None:
    """As the callback's docstring has it, with rounds of which LightGBM keeps no tree."""
    checkpoint = session.get_checkpoint()
    done = OfLightGBM.get_rounds(checkpoint) if checkpoint else 0
    model = OfLightGBM.get_model(checkpoint) if checkpoint else None
    callback = OfLightGBM(frequency=2, rounds_before=done)
    unsplit = {"min_gain_to_split": 6, "learning_rate": 0.9}
    train_lightgbm(callback, (fails_after or rounds) - done, init_model=model, params=unsplit)


@pytest.mark.parametrize("train", [resumed_xgboost, resumed_lightgbm])
def test_a_function_that_goes_on_from_a_checkpoint_has_each_round_once(alone, train):
    train(9, fails_after=4)
    train(9, fails_after=6)
    train(9)
    assert len(alone.reports) == 9
    assert [checkpoint is not None for _, checkpoint in alone.reports] == [False, True] * 4 + [True]
    last = alone.reports[-1][1]
    if train is resumed_xgboost:
        assert last.get_model().num_boosted_rounds() == 9
    else:
        assert (last.get_rounds(), last.get_model().current_iteration() < 4) == (9, True)


@BOTH
def test_metrics_are_chosen_renamed_and_changed_as_rays_callback_does(alone, callback, train, metric):
    train(callback(metrics=metric, checkpoint_at_end=False), 1)
    train(callback(metrics=[metric]), 1)
    train(callback({"loss": metric}, results_postprocessing_fn=lambda found: {**found, "is_small": 1}), 1)
    assert [list(metrics) for metrics, _ in alone.reports] == [[metric], [metric], ["loss", "is_small"]]
    assert [checkpoint is not None for _, checkpoint in alone.reports] == [False, True, True]
    with pytest.raises(
        InvalidArgumentError, match=f"asked to report 'loss', but the metrics are '{metric}', 'train-.*'. A metric is"
    ):
        train(callback(metrics=["loss"]), 1)


@BOTH
def test_the_file_has_another_name_if_one_is_given(alone, callback, train, metric):
    name = "other.json" if callback is OfXGBoost else "other.txt"
    train(callback(filename=name), 2)
    assert _rounds_of(callback.get_model(alone.reports[-1][1], filename=name)) == 2


def test_xgboosts_own_early_stopping_ends_with_a_model(alone):
    noise = xgboost.DMatrix(ROWS, RNG.integers(0, 2, size=200))
    matrix = xgboost.DMatrix(ROWS, LABELS)
    xgboost.train(
        {"objective": "binary:logistic", "nthread": 1},
        matrix,
        50,
        evals=[(noise, "valid")],
        early_stopping_rounds=2,
        callbacks=[OfXGBoost()],
        verbose_eval=False,
    )
    assert len(alone.reports) < 50
    assert [checkpoint is not None for _, checkpoint in alone.reports] == [False] * (len(alone.reports) - 1) + [True]
    assert OfXGBoost.get_model(alone.reports[-1][1]).best_iteration == len(alone.reports) - 3


def _rounds_of(model):
    return model.num_boosted_rounds() if isinstance(model, xgboost.Booster) else model.current_iteration()


def test_the_packages_do_without_the_libraries_until_the_callback_of_xgboost_is_asked_for():
    code = """
import sys
import trainlib.lightgbm, trainlib.xgboost
from trainlib.lightgbm import RayTrainReportCallback
RayTrainReportCallback()
assert not {"lightgbm", "xgboost"} & set(sys.modules)
assert "RayTrainReportCallback" in dir(trainlib.xgboost)
from trainlib.xgboost import RayTrainReportCallback
assert "xgboost" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
