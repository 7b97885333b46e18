"""What is reported and is no number becomes a tag."""

from __future__ import annotations

from datetime import date

import numpy as np

from trainlib._registry.reported_values import LONGEST, ReportedValues


def test_each_kind_of_value_has_a_text():
    values = ReportedValues()
    reported = {
        "phase": "warm-up",
        "best": None,
        "layers": [64, 32],
        "per class": np.array([0.5, 1.0]),
        "day": date(2026, 1, 31),
        "gain%": "much",
        "large": 10**400,
    }
    values.add(reported)
    tags, remarks = values.changed()
    assert remarks == []
    assert tags.pop("reported.large") == str(10**400)
    (odd,) = [name for name in tags if name.startswith("reported.gain")]
    assert tags.pop(odd) == "much"
    assert tags == {
        "reported.phase": "warm-up",
        "reported.best": "null",
        "reported.layers": "[64, 32]",
        "reported.per class": "[0.5, 1.0]",
        "reported.day": '"2026-01-31"',
    }


def test_what_cannot_be_stored_is_told_once_and_in_one_line():
    values = ReportedValues()
    bad = {"thing": object(), "text": "x" * (LONGEST + 1), "half": "\ud800", "zero": "\0"}
    values.add(bad)
    tags, (note,) = values.changed()
    assert tags == {}
    assert note == (
        "MLflow cannot store 'thing' (an object), 'text' (a str of 8001 characters), 'half' (a str of 1 character), "
        "'zero' (a str of 1 character) of what was reported. result.metrics and callbacks have it."
    )
    values.add(bad)
    assert values.changed() == ({}, [])


def test_only_what_has_changed_is_written_and_not_at_each_report():
    values = ReportedValues()
    assert not values.is_due
    values.add({"phase": "warm-up"})
    assert values.is_due
    assert values.changed() == ({"reported.phase": "warm-up"}, [])
    values.add({"phase": "warm-up", "best": None})
    assert not values.is_due, "they were written less than a second ago"
    assert values.changed() == ({"reported.best": "null"}, [])
