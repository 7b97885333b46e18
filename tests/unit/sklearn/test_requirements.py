"""What a registered estimator needs where it is served: also the libraries of estimators that are not scikit-learn's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

from tests.saved_checkpoints import saved
from trainlib._serving.files import put_model_files
from trainlib.sklearn import SklearnCheckpoint

FEATURES, LABELS = np.arange(40.0).reshape(20, 2), [0, 1] * 10


class OwnForest(RandomForestClassifier):
    """Of a module that no index has."""


@pytest.mark.parametrize(
    ("estimator", "libraries"),
    [
        (RandomForestClassifier(n_estimators=2), []),
        (OwnForest(n_estimators=2), []),
        (XGBClassifier(n_estimators=2), ["xgboost"]),
        (make_pipeline(StandardScaler(), LGBMClassifier(n_estimators=2, verbose=-1)), ["lightgbm"]),
        (GridSearchCV(XGBClassifier(n_estimators=2), {"max_depth": [1, 2]}, cv=2), ["xgboost"]),
    ],
    ids=["scikit-learn's", "a user's", "XGBoost's", "LightGBM's in a pipeline", "XGBoost's in a search"],
)
def test_the_library_of_an_estimator_is_named(estimator, libraries, tmp_path):
    each = saved(SklearnCheckpoint.from_estimator(estimator.fit(FEATURES, LABELS)), str(tmp_path))
    assert put_model_files(each, "run-1") is None
    lines = Path(each.location).parent.joinpath("requirements.txt").read_text().splitlines()
    names = [line.partition("==")[0].removesuffix("-cpu") for line in lines]
    assert names == ["mlflow", "scikit-learn", *libraries]
    assert all("==" in line for line in lines), "in the versions that are installed here"


def test_nothing_in_a_pickle_runs_when_it_is_registered(tmp_path):
    class Harmful(RandomForestClassifier):
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    each = saved(SklearnCheckpoint.from_estimator(Harmful()), str(tmp_path))
    assert put_model_files(each, "run-1") is None
    assert not (tmp_path / "ran").exists()
