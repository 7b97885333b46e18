"""What is wrong with a training of boosted trees is said before anything starts, or by whoever reads the rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from trainlib import ScalingConfig
from trainlib import _rooms as rooms
from trainlib._boosting import table
from trainlib._boosting.labels import Needs, require_fit
from trainlib.errors import DataError, InvalidArgumentError
from trainlib.lightgbm import LightGBMTrainer
from trainlib.xgboost import XGBoostTrainer

ROWS = pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})
GOOD = {"params": {}, "label_column": "y", "datasets": {"train": ROWS}}
BOTH = pytest.mark.parametrize("trainer", [XGBoostTrainer, LightGBMTrainer])


@BOTH
def test_a_missing_package_is_named_with_its_extra(monkeypatch, trainer):
    package = trainer.room.name
    monkeypatch.setattr(rooms, "find_spec", lambda name: None if name == package else "found")
    with pytest.raises(ImportError, match=rf"{trainer.__name__} needs {package}: pip install 'trainlib\[{package}\]'"):
        trainer(**GOOD)


@BOTH
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": {"valid": ROWS}}, "learns from the dataset 'train', but the datasets are 'valid'"),
        ({"datasets": None}, "learns from the dataset 'train', but the datasets are none"),
        (
            {"label_column": "z"},
            "the dataset 'train' has no column 'z', which label_column names. Its columns are 'a', 'y'",
        ),
        ({"label_column": None}, "label_column of .* is missing: pass the name of the column to predict"),
        ({"params": None}, "params of .* is missing: pass a dict"),
        ({"params": [("eta", 0.1)]}, r"params of .* is \[\('eta', 0.1\)\]: pass a dict"),
        ({"num_boost_round": 0}, "num_boost_round is 0: pass a whole number that is 1 or more"),
        ({"dmatrix_params": "train"}, "dmatrix_params of .* is 'train': pass a dict"),
    ],
)
def test_arguments_that_cannot_be_right(trainer, changes, message):
    with pytest.raises((ValueError, InvalidArgumentError, DataError), match=message):
        trainer(**{**GOOD, **changes})


@pytest.mark.parametrize(
    ("trainer", "objective"),
    [(XGBoostTrainer, "multi:softmax"), (XGBoostTrainer, "multi:softprob"), (LightGBMTrainer, "multiclass")],
)
def test_objectives_of_classes_need_their_number(trainer, objective):
    with pytest.raises(ValueError, match=f"the objective {objective} needs num_class, the number of classes"):
        trainer(**{**GOOD, "params": {"objective": objective}})
    with pytest.raises(ValueError, match="num_class is -1: pass the number of classes"):
        trainer(**{**GOOD, "params": {"objective": objective, "num_class": -1}})


@BOTH
def test_files_without_the_label_or_with_too_few_rows_are_found_before_anything_starts(tmp_path, trainer):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    ROWS.to_parquet(tmp_path / "rows.parquet")
    files = {"train": str(tmp_path / "rows.csv")}
    with pytest.raises(DataError, match=r"'train' \(.*rows.csv\) has no column 'z', which label_column names"):
        trainer(params={}, label_column="z", datasets=files).inspect_data()
    few = trainer(
        params={},
        label_column="y",
        datasets={"train": ROWS, "valid": str(tmp_path / "rows.parquet")},
        scaling_config=ScalingConfig(num_workers=3),
    )
    with pytest.raises(DataError, match=r"'valid' .* has only 2 row\(s\) for 3 workers"):
        few.inspect_data()


@pytest.mark.parametrize(
    ("need", "labels", "wrong"),
    [
        (Needs.BETWEEN_0_AND_1, [0, 0.5, 1], 9),
        (Needs.ZERO_OR_ONE, [0, 1, 1], 0.5),
        (Needs.CLASSES, [0, 1, 2], 3),
        (Needs.CLASSES, [2, 2, 2], 0.5),
        (Needs.NOT_NEGATIVE, [0, 7], -1),
        (Needs.POSITIVE, [0.1, 7], 0),
    ],
)
def test_labels_that_an_objective_cannot_learn(need, labels, wrong):
    require_fit(np.array(labels, "float32"), need, "some", 3, "the label")
    with pytest.raises(
        DataError, match=f"the objective some needs labels that are {need}.* has {wrong}. Choose another"
    ):
        require_fit(np.array([*labels, wrong], "float32"), need, "some", 3, "the label")


def test_columns_that_are_no_numbers_are_named_with_what_to_do():
    text = pa.table({"city": ["Ulm", "Bonn"], "a": [1, 2]})
    with pytest.raises(DataError, match=r"the column 'city' of some rows is string, which is no number. Encode it"):
        table._require_features(text, "some rows", categories=True)
    category = pa.table({"city": text["city"].dictionary_encode()})
    table._require_features(category, "some rows", categories=True)
    with pytest.raises(DataError, match="the column 'city'"):
        table._require_features(category, "some rows", categories=False)
    with pytest.raises(DataError, match="some rows has no columns besides the label"):
        table._require_features(pa.table({}), "some rows", categories=True)
    with pytest.raises(DataError, match=r"the label is string, which is no number. Encode it"):
        table._numbers(text["city"], "the label", 0)
    with pytest.raises(DataError, match="the label is missing in 2 of the 4 rows of rank 1"):
        table._numbers(pa.chunked_array([[1.0, None], [float("nan"), 2.0]]), "the label", 1)
    assert table._numbers(pa.chunked_array([[True], [False]]), "the label", 0).tolist() == [1.0, 0.0]


def test_a_parameter_that_a_library_does_not_know():
    import xgboost

    from trainlib.lightgbm._unknown import require_known as lightgbm_knows
    from trainlib.xgboost._unknown import require_known as xgboost_knows

    matrix = xgboost.DMatrix(np.eye(4), [0, 0, 1, 1])
    good = {"objective": "binary:logistic", "eval_metric": ["auc", "error"], "eta": 0.1, "max_depth": 3, "nthread": 1}
    xgboost_knows(good, matrix)
    xgboost_knows({**good, "max_dept": 3, "validate_parameters": False}, matrix)
    with pytest.raises(InvalidArgumentError, match="XGBoost does not know the parameters 'eta_', 'max_dept' in params"):
        xgboost_knows({**good, "max_dept": 3, "eta_": 1}, matrix)
    lightgbm_knows({"objective": "binary", "metric": ["auc"], "eta": 0.1, "n_jobs": 1, "num_leaves": 8})
    with pytest.raises(InvalidArgumentError, match=r"'max_dept' in params\. Did you mean 'max_depth'"):
        lightgbm_knows({"max_dept": 3})
