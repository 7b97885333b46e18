"""What the Prefect UI shows of values that were passed from Python."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from trainlib.flows._shown import shown

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner))


@given(trees)
def test_prefect_can_store_whatever_it_is(tree):
    assert len(orjson.dumps(shown({"config": tree}))) < 512 * 1024


def test_plain_settings_stay_as_they_are():
    config = {"lr": 0.1, "layers": [1, 2], "name": "ü", "nested": {"a": None, "b": True}}
    assert shown(config) == config


def test_what_is_large_is_shortened():
    itself: dict = {}
    itself["itself"] = itself
    found = shown(
        {"text": "x" * 1_000_000, "list": list(range(1_000_000)), "number": 10**400, "itself": itself, "a\0b": 1}
    )
    assert found["text"].endswith("x… 1000000 characters in all")
    assert found["list"][-1] == "… 1000000 items in all"
    assert found["number"] == "an integer of 1329 bits"
    assert "a\\0b" in found
    assert len(orjson.dumps(found)) < 10_000


def test_many_large_values_are_named_only():
    found = shown({"small": 1, **{f"text {number}": ["x" * 1000] * 90 for number in range(50)}})
    assert found["small"] == 1
    assert found["text 0"] == "a list that is too large to be shown"
    assert len(orjson.dumps(found)) < 10_000
