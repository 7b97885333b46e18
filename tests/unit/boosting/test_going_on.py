"""A training of LightGBM that goes on from a checkpoint ends with the model that it would have had without a break."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.unit.boosting.test_early_stopping import Alone
from trainlib import session
from trainlib._boosting.table import LabelledTable
from trainlib.config import CheckpointConfig
from trainlib.errors import InvalidArgumentError
from trainlib.lightgbm import LightGBMCheckpoint, LightGBMTrainer
from trainlib.lightgbm import _boost as boost

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 2))
LABELS, SCORES = (ROWS[:, 0] + 3 * ROWS[:, 1] > 0).astype("float32"), (ROWS[:, 1] * 3).astype("float32")
PARAMS = {"objective": "binary", "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 4}


@pytest.fixture
def trained(monkeypatch):
    """Trains to so many rounds, from the newest checkpoint, and returns the model."""
    running = Alone()
    running.checkpoint_config = CheckpointConfig(checkpoint_frequency=3)
    session.enter(running)

    def train(
        rounds: int,
        params: dict,
        columns: dict[str, np.ndarray],
        attempt: int = 1,
        valid: np.ndarray | None = None,
    ) -> lightgbm.Booster:
        table = LabelledTable("train", pa.table({"a": ROWS[:, 0], "b": ROWS[:, 1]}), LABELS, columns)
        other = table if valid is None else replace(table, name="valid", labels=valid)
        monkeypatch.setattr(boost, "read_tables", lambda *_, **__: {"train": table, "valid": other})
        running.context = session.TrainContext(run_id="run", attempt=attempt)
        boost.boost_trees({"params": params, "num_boost_round": rounds, "label_column": "y"})
        return running.checkpoint.get_model()

    train.running = running
    yield train
    session.enter(None)


@pytest.mark.parametrize("columns", [{}, {"init_score": SCORES}], ids=["without", "with init_score"])
def test_scores_that_rows_start_from_count_also_in_a_training_that_goes_on(trained, columns):
    trained(3, PARAMS, columns)
    resumed = trained(6, PARAMS, columns)
    first = [metrics for metrics, _ in trained.running.reports]
    trained.running.checkpoint, trained.running.reports = None, []
    whole = trained(6, PARAMS, columns)
    assert resumed.current_iteration() == 6
    np.testing.assert_allclose(resumed.predict(ROWS), whole.predict(ROWS), atol=1e-6)
    for ours, theirs in zip(first, [metrics for metrics, _ in trained.running.reports], strict=True):
        assert ours == pytest.approx(theirs), "what is measured, on all datasets"


SOMETIMES_SPLIT = {
    "objective": "regression",
    "learning_rate": 0.5,
    "num_threads": 1,
    "min_data_in_leaf": 6,
    "bagging_fraction": 0.3,
    "bagging_freq": 1,
    "seed": 3,
}
"""With the few rows below, LightGBM finds nothing to split in some rounds, and keeps no tree of them."""


def test_rounds_in_which_nothing_was_split_count_also_in_a_training_that_goes_on(trained, monkeypatch):
    monkeypatch.setitem(globals(), "ROWS", np.column_stack([np.arange(40.0), np.zeros(40)]))
    monkeypatch.setitem(globals(), "LABELS", (np.arange(40) > 20).astype("float32"))
    model = trained(12, SOMETIMES_SPLIT, {})
    assert model.current_iteration() < 9, "LightGBM itself does not know"
    assert trained.running.checkpoint.get_rounds() == 12
    trained(20, SOMETIMES_SPLIT, {}, attempt=2)
    assert len(trained.running.reports) == 20, "each round once"
    assert trained.running.checkpoint.get_rounds() == 20
    trained(20, SOMETIMES_SPLIT, {}, attempt=3)
    assert len(trained.running.reports) == 20, "a retry finds that none is missing"
    trained.running.checkpoint, trained.running.reports = LightGBMCheckpoint.from_model(model), []
    trained(20, SOMETIMES_SPLIT, {})
    assert len(trained.running.reports) == 20 - model.current_iteration(), (
        "what a model itself knows, where nobody else does"
    )


def test_a_model_that_was_stopped_early_has_the_rounds_until_its_best_one(trained):
    trained(30, {**PARAMS, "learning_rate": 0.9, "early_stopping_round": 2}, {})
    kept = trained.running.checkpoint
    assert kept.get_rounds() == kept.get_model().current_iteration()


def test_a_model_that_was_stopped_early_predicts_as_its_best_round_was_measured(trained, monkeypatch):
    """Although LightGBM counts its trees, of which some rounds have none."""
    rows = np.column_stack([np.arange(60.0), np.zeros(60)])
    monkeypatch.setitem(globals(), "ROWS", rows)
    without_tree = 0
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=(2, 60)) * 0.5
        labels, others = (np.sin(rows[:, 0] / 9) + noise).astype("float32")
        monkeypatch.setitem(globals(), "LABELS", labels)
        params = {
            **SOMETIMES_SPLIT,
            "learning_rate": 0.4,
            "min_data_in_leaf": 8,
            "bagging_fraction": 0.35,
            "seed": seed,
        }
        trained.running.checkpoint, trained.running.reports = None, []
        trained(100, {**params, "metric": "l2", "early_stopping_round": 6}, {}, valid=others)
        kept, (measured, _) = trained.running.checkpoint, trained.running.reports[-1]
        assert np.mean((kept.get_model().predict(rows) - others) ** 2) == pytest.approx(measured["valid-l2"], abs=1e-6)
        without_tree += kept.get_rounds() > kept.get_model().current_iteration()
    assert without_tree > 2, "or this shows nothing"


def test_a_forest_is_trained_anew_by_a_retry_and_each_round_is_reported_once(trained):
    forest = {**PARAMS, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    trained(3, forest, {})
    resumed = trained(6, forest, {}, attempt=2)
    assert len(trained.running.reports) == 6
    trained.running.checkpoint = None
    np.testing.assert_allclose(resumed.predict(ROWS), trained(6, forest, {}).predict(ROWS))


def test_a_forest_does_not_go_on_from_a_checkpoint_that_is_given(tmp_path):
    model = lightgbm.train({**PARAMS, "verbosity": -1}, lightgbm.Dataset(ROWS, LABELS), 1)
    given = {
        "params": {"boost": "random_forest", "bagging_freq": 1, "bagging_fraction": 0.5},
        "label_column": "y",
        "datasets": {"train": pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})},
    }
    LightGBMTrainer(**given)
    with pytest.raises(
        InvalidArgumentError, match=r"cannot add trees to a random forest .* Leave resume_from_checkpoint"
    ):
        LightGBMTrainer(**given, resume_from_checkpoint=LightGBMCheckpoint.from_model(model))


def test_a_column_of_scores_is_none_for_several_classes():
    with pytest.raises(
        InvalidArgumentError, match=r"which is one column, but the objective softmax has a score for each"
    ):
        LightGBMTrainer(
            params={"objective": "softmax", "num_class": 3},
            label_column="y",
            datasets={"train": pd.DataFrame({"a": [1.0, 2.0], "s": [1.0, 2.0], "y": [0, 1]})},
            dmatrix_params={"train": {"init_score": "s"}},
        )
