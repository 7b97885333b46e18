"""What report() takes: any dict."""

from __future__ import annotations

import pickle
import threading
from datetime import date
from enum import IntEnum

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainlib._execution.reported import is_plain, numbers_of, snapshot
from trainlib._flat import flattened
from trainlib.errors import MetricError

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
trees = st.dictionaries(
    st.text(), st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)
)


class Phase(IntEnum):
    WARM_UP = 3


@settings(max_examples=50)
@given(trees)
def test_what_was_reported_comes_back_as_it_was(metrics):
    arrived = pickle.loads(pickle.dumps(snapshot(metrics)))
    assert arrived == metrics
    assert all(type(value) in (int, float, bool) for value in numbers_of(arrived).values())


def test_plain_numbers_are_not_even_copied():
    metrics = {"loss": 0.5, "epoch": 1, "done": False}
    assert snapshot(metrics) is metrics
    assert numbers_of(metrics) is metrics
    assert not is_plain({1: 0.5})


def test_scalars_become_numbers():
    metrics = {
        "np": np.float32(0.25),
        "t": torch.tensor(2.0, requires_grad=True),
        "one": torch.tensor([3]),
        "flag": np.bool_(True),
        "zero-dim": np.array(4),
        "nested": {"np": np.int64(5), "list": [np.float64(6.0), torch.tensor(7)]},
    }
    found = snapshot(metrics)
    assert found == {
        "np": 0.25,
        "t": 2.0,
        "one": 3,
        "flag": True,
        "zero-dim": 4,
        "nested": {"np": 5, "list": [6.0, 7]},
    }
    assert {type(value) for value in numbers_of(found).values()} == {float, int, bool}
    assert numbers_of(found)["nested/np"] == 5


def test_other_values_stay_what_they_are():
    per_class = np.array([0.5, 0.25])
    metrics = {
        "phase": "warm-up",
        "best": None,
        "tuple": (1, "a"),
        "per class": per_class,
        "day": date(2026, 1, 31),
        "enum": Phase.WARM_UP,
        "one": np.array([3]),
        1: 0.5,
        "large": 10**400,
        "empty": {},
    }
    found = pickle.loads(pickle.dumps(snapshot(metrics)))
    assert found["per class"].tolist() == [0.5, 0.25]
    assert found["one"].tolist() == [3]
    others = metrics.keys() - {"per class", "one"}
    assert {key: found[key] for key in others} == {key: metrics[key] for key in others}
    assert type(found["tuple"]) is tuple
    assert numbers_of(found) == numbers_of(snapshot(metrics)) == {"enum": 3, "1": 0.5, "one": 3}
    assert flattened({"val": {"acc": 1, "empty": {}}}) == {"val/acc": 1, "val/empty": {}}


def test_what_is_changed_after_the_report_was_not_reported():
    matrix, seen = np.zeros(2), [1]
    found = snapshot({"matrix": matrix, "nested": {"seen": seen}})
    matrix += 1
    seen.append(2)
    assert found["matrix"].tolist() == [0, 0]
    assert found["nested"] == {"seen": [1]}


def test_an_object_that_cannot_travel_arrives_as_text():
    lock = threading.Lock()
    assert snapshot({"lock": lock}) == {"lock": repr(lock)}


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("not ready")


def test_an_object_whose_repr_raises_is_reported_all_the_same():
    found = pickle.loads(pickle.dumps(snapshot({"odd": Unspeakable()})))
    assert isinstance(found["odd"], Unspeakable)
    holder = Unspeakable()
    holder.lock = threading.Lock()
    assert snapshot({"odd": holder}) == {"odd": "<Unspeakable>"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.zeros(3), r"metric 'loss' is a Tensor of shape \(3,\)\. Put tensors in a checkpoint"),
        (torch.nn.Parameter(torch.zeros(2, 2)), r"metric 'loss' is a Parameter of shape \(2, 2\)\. Put tensors in"),
        ({"weights": torch.zeros(3)}, r"metric 'loss/weights' is a Tensor of shape \(3,\)"),
        ([1, torch.zeros(3)], r"metric 'loss\[1\]' is a Tensor"),
        (torch.nn.Linear(1, 1), r"metric 'loss' is a Linear, a part of a model\. Put it in a checkpoint"),
        (torch.nn.Linear(2, 2).state_dict(), r"metric 'loss/weight' is a Tensor of shape \(2, 2\)"),
    ],
)
def test_tensors_and_models_belong_into_a_checkpoint(value, message):
    with pytest.raises(MetricError, match=message) as caught:
        snapshot({"loss": value})
    assert isinstance(caught.value, ValueError)


def test_a_dict_that_contains_itself_is_an_error():
    metrics: dict = {}
    metrics["again"] = metrics
    with pytest.raises(MetricError, match="nested more than 50 levels"):
        snapshot(metrics)
