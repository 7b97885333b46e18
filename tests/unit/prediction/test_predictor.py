"""What a predictor may return, and what is written beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from trainlib._prediction.predictor import as_columns, beside, renamed
from trainlib.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("predicted", "columns"),
    [
        (np.array([1, 2]), {"prediction": [1, 2]}),
        (pd.Series([1, 2], index=[7, 8]), {"prediction": [1, 2]}),
        (np.array([[0.1, 0.9], [0.8, 0.2]]), {"prediction_0": [0.1, 0.8], "prediction_1": [0.9, 0.2]}),
        ({"digit": np.array([3, 4]), "sure": [True, False]}, {"digit": [3, 4], "sure": [True, False]}),
        ({"embedding": np.zeros((2, 2))}, {"embedding": [[0.0, 0.0], [0.0, 0.0]]}),
        (pd.DataFrame({"digit": [3, 4]}, index=[5, 6]), {"digit": [3, 4]}),
        (np.zeros((2, 1, 2)), {"prediction": [[[0.0, 0.0]], [[0.0, 0.0]]]}),
        ([[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]], {"prediction": [[[1.0, 2.0]], [[1.0, 2.0], [3.0, 4.0]]]}),
    ],
)
def test_predictions_become_columns(predicted, columns):
    assert as_columns(predicted, 2).to_dict("list") == columns


@pytest.mark.parametrize(
    ("predicted", "why"),
    [([1, 2, 3], "3 rows for a batch of 2"), (5, "the predictor returned an int"), ("ab", "returned a str")],
)
def test_what_has_not_one_row_for_each_is_refused(predicted, why):
    with pytest.raises(InvalidArgumentError, match=why):
        as_columns(predicted, 2)


def test_kept_columns_come_first_and_are_never_replaced():
    kept = pd.DataFrame({"id": [1, 2]}, index=[10, 11])
    assert beside(kept, pd.DataFrame({"digit": [3, 4]})).to_dict("list") == {"id": [1, 2], "digit": [3, 4]}
    with pytest.raises(InvalidArgumentError, match=r"has a column 'id', .* Leave it out of keep_columns"):
        beside(kept, pd.DataFrame({"id": [3, 4]}))


def test_what_a_model_calls_as_the_dataset_does_is_renamed_and_what_a_function_does_is_not():
    predicted = pd.DataFrame({"label": ["good"], "score": [0.9]})
    assert renamed(predicted, ["id", "label"]).to_dict("list") == {"prediction_label": ["good"], "score": [0.9]}
    assert renamed(predicted, ["id"]).equals(predicted)
    with pytest.raises(InvalidArgumentError, match="the model returned one, too"):
        beside(pd.DataFrame({"prediction": [1]}), renamed(pd.DataFrame({"prediction": [2]}), ["prediction"]), "model")
