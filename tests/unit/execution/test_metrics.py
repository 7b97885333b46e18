"""What report() takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trainlib._execution.metrics import as_numbers
from trainlib.errors import MetricError


def test_numbers_of_all_kinds():
    metrics = {"i": 1, "f": 0.5, "b": True, "np": np.float32(0.25), "t": torch.tensor(2.0), "one": np.array([3])}
    assert as_numbers(metrics) == {"i": 1, "f": 0.5, "b": True, "np": 0.25, "t": 2.0, "one": 3}
    assert all(type(value) in (int, float, bool) for value in as_numbers(metrics).values())


def test_nested_metrics_are_joined():
    assert as_numbers({"val": {"acc": 1, "top": {"5": 2}}}) == {"val/acc": 1, "val/top/5": 2}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("low", "metric 'loss' is 'low', a str"),
        (None, "metric 'loss' is None, a NoneType"),
        ([1, 2], "metric 'loss' is \\[1, 2\\], a list"),
        (10**400, "metric .loss. is an integer of 1329 bits, too large"),
        (np.zeros((2, 2)), "a ndarray of shape \\(2, 2\\)"),
        (torch.zeros(2), "a Tensor of shape \\(2,\\)"),
    ],
)
def test_anything_else_is_named(value, message):
    with pytest.raises(MetricError, match=message):
        as_numbers({"loss": value})
