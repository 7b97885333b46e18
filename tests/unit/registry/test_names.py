"""What metrics and params are called in MLflow."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param

from trainlib._registry.names import stored_name

# The characters that matter, more often than others.
names = st.text(st.sampled_from("ab@/. :-_%\n\0ü") | st.characters(), max_size=300)


@pytest.mark.parametrize("name", ["loss", "val/f1 score: a-b.c", "x" * 250])
def test_a_name_that_mlflow_accepts_stays(name):
    assert stored_name(name) == name


@given(names)
@example("/acc")
@example("a//b")
@example("loss/")
@example("..")
@example("..a")
@example("")
@example("x" * 300)
@example("\ud800")
def test_mlflow_accepts_every_stored_name(name):
    _validate_metric_name(stored_name(name))
    _validate_param(stored_name(name), "1")


@given(names, names)
@example("recall@10", "recall_10")
@example("recall@10", "recall at 10")
@example("a//b", "a/b")
@example("x" * 300, "x" * 299)
def test_two_names_are_kept_apart(one, other):
    assert (stored_name(one) == stored_name(other)) == (one == other)
