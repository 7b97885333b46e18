"""A served model takes rows as they come: with other columns, in another order, without names, and with categories as text."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost

from tests.unit.boosting.test_early_stopping import Alone
from trainlib import session
from trainlib._boosting.rounds import Rounds
from trainlib._serving.arrays import as_frame
from trainlib._serving.checkpoints import loader_of, why_not_served
from trainlib.checkpoint import Checkpoint
from trainlib.lightgbm import LightGBMCheckpoint
from trainlib.xgboost import XGBoostCheckpoint
from trainlib.xgboost._rounds import ReportRounds

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(300, 3)), columns=["mean radius", "b", "mean_area"])
LABELS = (ROWS["mean radius"] > ROWS["b"]).astype(int)
CITIES = RNG.choice(["Ulm", "Bonn", "Kiel"], size=300)
WITH_CITIES = pa.table({"city": pa.array(CITIES).dictionary_encode(), "b": ROWS["b"].to_numpy()})
FROM_ULM = (CITIES == "Ulm").astype(int)


def served(checkpoint):
    with checkpoint.as_directory() as folder:
        return loader_of(checkpoint.kind)(folder)


def served_by_xgboost(rows, labels=LABELS):
    matrix = xgboost.DMatrix(rows, labels, enable_categorical=True)
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 3)
    return served(XGBoostCheckpoint.from_model(model)), model.predict(matrix)


def served_by_lightgbm(rows, labels=LABELS):
    params = {"objective": "binary", "verbosity": -1, "num_threads": 1}
    model = lightgbm.train(params, lightgbm.Dataset(rows, labels), 3)
    return served(LightGBMCheckpoint.from_model(model)), model.predict(rows)


BOTH = pytest.mark.parametrize("served_by", [served_by_xgboost, served_by_lightgbm])


@BOTH
def test_columns_are_found_by_their_names_which_may_have_spaces(served_by):
    predict, expected = served_by(ROWS)
    np.testing.assert_allclose(predict(ROWS), expected)
    np.testing.assert_allclose(predict(ROWS[ROWS.columns[::-1]]), expected)
    labelled = ROWS.assign(target=LABELS)[["target", "b", "mean_area", "mean radius"]]
    np.testing.assert_allclose(predict(labelled), expected, err_msg="the label is no feature")
    with pytest.raises(ValueError, match=r"the rows lack the column 'mean.radius', which the model was trained with"):
        predict(ROWS.drop(columns="mean radius"))
    with pytest.raises(ValueError, match=r"the rows lack the column 'mean.radius'"):
        predict(ROWS.rename(columns={"mean radius": "other"}))


@BOTH
def test_rows_may_be_arrows_as_ray_reads_them(served_by):
    with_gaps = ROWS.mask(RNG.random(ROWS.shape) < 0.2)
    predict, expected = served_by(with_gaps)
    of_arrow = with_gaps.convert_dtypes(dtype_backend="pyarrow")
    assert {str(kind) for kind in of_arrow.dtypes} == {"double[pyarrow]"}
    np.testing.assert_allclose(predict(of_arrow), expected)


@BOTH
@pytest.mark.parametrize("missing", [None, pd.NA, np.nan], ids=str)
def test_a_column_whose_values_are_all_missing_is_one_of_numbers(served_by, missing):
    """As it comes with a request for one row: ``{"columns": ["a", "b"], "data": [[1.0, null]]}``."""
    predict, expected = served_by(ROWS.assign(b=np.nan))
    asked = ROWS.assign(b=pd.Series([missing] * len(ROWS), dtype=object))
    np.testing.assert_allclose(predict(asked), expected)
    np.testing.assert_allclose(predict(asked.head(1)), expected[:1])
    assert asked["b"].dtype == object, "the caller's rows stay as they were"
    of_arrow = ROWS.assign(b=pd.Series([None] * len(ROWS), dtype=pd.ArrowDtype(pa.null())))
    np.testing.assert_allclose(predict(of_arrow), expected, err_msg="as Ray reads them")
    np.testing.assert_allclose(predict(asked.set_axis(range(3), axis=1)), expected, err_msg="without names")


@BOTH
def test_yes_and_no_may_have_gaps_in_a_request(served_by):
    answers = RNG.choice([1.0, 0.0, np.nan], size=len(ROWS))
    predict, expected = served_by(ROWS.assign(b=answers), LABELS)
    as_json = [{1.0: True, 0.0: False}.get(each) for each in answers]
    np.testing.assert_allclose(predict(ROWS.assign(b=pd.Series(as_json, dtype=object))), expected)


def test_text_is_no_missing_number():
    for served_by in (served_by_xgboost, served_by_lightgbm):
        predict, _ = served_by(ROWS)
        with pytest.raises(ValueError, match=r"b: object|bad pandas dtypes"):
            predict(ROWS.assign(b=[None] + ["text"] * (len(ROWS) - 1)).astype({"b": object}))


def test_lightgbm_prefers_the_column_that_has_the_name_itself():
    predict, expected = served_by_lightgbm(ROWS.rename(columns={"mean radius": "mean_radius"}))
    both = ROWS.rename(columns={"mean radius": "mean_radius"}).assign(**{"mean radius": 0.0})
    np.testing.assert_allclose(predict(both), expected)


@BOTH
def test_rows_without_names_need_as_many_columns_as_the_model(served_by):
    predict, expected = served_by(ROWS)
    np.testing.assert_allclose(predict(as_frame(ROWS.to_numpy())), expected)
    for wrong in (ROWS.to_numpy()[:, :2], np.hstack([ROWS.to_numpy(), ROWS.to_numpy()])):
        with pytest.raises(
            ValueError, match=rf"the rows have {wrong.shape[1]} columns, but the model was trained with 3"
        ):
            predict(as_frame(wrong))


@BOTH
def test_a_model_that_knows_no_names_takes_the_columns_in_their_order(served_by):
    predict, expected = served_by(ROWS.to_numpy())
    np.testing.assert_allclose(predict(ROWS), expected)
    np.testing.assert_allclose(predict(as_frame(ROWS.to_numpy())), expected)
    with pytest.raises(ValueError, match="the rows have 4 columns, but the model was trained with 3"):
        predict(ROWS.assign(target=LABELS))


def test_categories_may_come_as_text():
    predict, expected = served_by_xgboost(WITH_CITIES, FROM_ULM)
    asked = json.loads(json.dumps(WITH_CITIES.to_pylist()))
    np.testing.assert_allclose(predict(pd.DataFrame(asked)), expected)
    reordered = pd.Categorical(CITIES, categories=["Kiel", "Ulm", "Bonn"])
    np.testing.assert_allclose(predict(pd.DataFrame(asked).assign(city=reordered)), expected)
    one = CITIES == "Ulm"
    np.testing.assert_allclose(predict(pd.DataFrame(asked)[one]), expected[one], err_msg="not all of them are there")
    assert len(predict(pd.DataFrame({"city": [None], "b": [0.0]}))) == 1, "a missing value is none of them"
    with pytest.raises(
        ValueError, match=r"the column 'city' has 'Rom', which the model was not trained with. It knows .*'Kiel'"
    ):
        predict(pd.DataFrame({"city": ["Ulm", "Rom"], "b": [0.0, 0.0]}))


def test_categories_that_are_numbers_are_those_of_the_training():
    codes = np.where(CITIES == "Ulm", 20, 10)
    rows = pd.DataFrame({"city": pd.Categorical(codes), "b": ROWS["b"]})
    predict, expected = served_by_xgboost(rows, FROM_ULM)
    np.testing.assert_allclose(predict(rows.assign(city=codes)), expected)
    np.testing.assert_allclose(predict(rows.assign(city=codes.astype(float))), expected)


def test_codes_of_a_model_that_does_not_know_its_categories_stay_as_they_are():
    codes = (CITIES == "Ulm").astype(float)
    matrix = xgboost.DMatrix(
        np.column_stack([codes, ROWS["b"]]),
        FROM_ULM,
        feature_names=["city", "b"],
        feature_types=["c", "q"],
        enable_categorical=True,
    )
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 3)
    predict = served(XGBoostCheckpoint.from_model(model))
    np.testing.assert_allclose(predict(pd.DataFrame({"b": ROWS["b"], "city": codes})), model.predict(matrix))
    assert len(predict(pd.DataFrame({"b": [0.0], "city": [None]}))) == 1
    with pytest.raises(
        ValueError, match="the column 'city' has no numbers, and the model does not know its categories"
    ):
        predict(pd.DataFrame({"b": ROWS["b"], "city": CITIES}))


def test_a_model_that_was_stopped_early_predicts_with_its_best_round():
    matrix = xgboost.DMatrix(ROWS, LABELS)
    noise = xgboost.DMatrix(ROWS, RNG.integers(0, 2, size=300))
    params = {"objective": "binary:logistic", "nthread": 1}
    model = xgboost.train(params, matrix, 20, evals=[(noise, "valid")], early_stopping_rounds=3, verbose_eval=False)
    best = model.best_iteration + 1
    assert best < model.num_boosted_rounds()
    predict = served(XGBoostCheckpoint.from_model(model))
    np.testing.assert_allclose(predict(ROWS), model.predict(matrix, iteration_range=(0, best)))


def test_what_stood_for_missing_values_in_training_does_so_in_rows_that_are_served():
    session.enter(Alone())
    with_gaps = ROWS.mask(RNG.random(ROWS.shape) < 0.3).fillna(-999.0)
    matrix = xgboost.DMatrix(with_gaps, LABELS, missing=-999.0)
    params = {"objective": "binary:logistic", "nthread": 1}
    model = xgboost.train(params, matrix, 3, callbacks=[ReportRounds(Rounds(3, 0), -999)], verbose_eval=False)
    session.enter(None)
    predict, expected = served(XGBoostCheckpoint.from_model(model)), model.predict(matrix)
    np.testing.assert_allclose(predict(with_gaps), expected)
    np.testing.assert_allclose(predict(with_gaps.replace(-999.0, np.nan)), expected, err_msg="NaN is missing as well")


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_a_checkpoint_without_a_model_says_why_it_cannot_be_served(kind, tmp_path):
    folder = Checkpoint.from_dict({"epoch": 1}).to_directory(tmp_path / "checkpoint")
    name = {"xgboost": "an XGBoostCheckpoint", "lightgbm": "a LightGBMCheckpoint"}[kind]
    assert f"it was not saved as {name}" in str(why_not_served(kind, folder))
    with pytest.raises(ValueError, match=f"this checkpoint cannot predict by itself: .* not saved as {name}"):
        loader_of(kind)(folder)


def test_a_model_that_xgboost_saved_as_json_is_served(tmp_path):
    matrix = xgboost.DMatrix(ROWS, LABELS)
    model = xgboost.train({"nthread": 1}, matrix, 2)
    model.save_model(tmp_path / "model.json")
    assert why_not_served("xgboost", str(tmp_path)) is None
    np.testing.assert_allclose(loader_of("xgboost")(str(tmp_path))(ROWS), model.predict(matrix))
