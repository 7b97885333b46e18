"""How params are stored in MLflow."""

from __future__ import annotations

from trainlib._registry.params import flat, stored_params


def test_names_that_mlflow_does_not_take_are_made_to_fit():
    params = stored_params({"a@b": 1, "a#b": 2, "x" * 300: 3, "y": "z" * 10_000, "": 5, "a//b": 6})
    stored = {param.key: param.value for param in params}
    assert [value for key, value in stored.items() if key != "y"] == ["1", "2", "3", "5", "6"]
    assert stored["a at b"] == "1"
    assert len(stored["y"]) == 6000


def test_nested_params_become_flat_and_empty_ones_stay():
    assert flat({"a": {"b": {"c": 1}, "d": {}}, "e": [1, {"f": 2}]}) == {"a.b.c": 1, "a.d": {}, "e": [1, {"f": 2}]}
