"""Any value as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from trainlib._json_text import as_json, text_of


class Itself:
    """Its list has itself in it, as that of a scalar of its own library may."""

    def tolist(self) -> Any:
        return [self]

    def __repr__(self) -> str:
        return "Itself()"


def test_what_contains_itself_is_cut_there():
    circle: list[Any] = [1]
    circle.append({"again": circle})
    assert json.loads(as_json(circle)) == [1, {"again": "..."}]
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]
    assert as_json(deep).count("[") == 50
    assert "..." in as_json(Itself())


def test_keys_and_values_beside_an_odd_one_are_as_without_it():
    plain = {"a": 1, "b": [None, True, np.float32(0.5)], "c": {2: "x"}}
    assert json.loads(as_json({**plain, (1, 2): np.array([3])})) == {
        **json.loads(as_json(plain)),
        "(1, 2)": [3],
    }


def test_a_text_of_anything():
    assert text_of(np.float32(0.5), str) == "0.5"
    assert text_of(np.array) == repr(np.array)
