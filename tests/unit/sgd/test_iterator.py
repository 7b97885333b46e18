"""Iterating over a run that goes on in the background."""

from __future__ import annotations

import threading

import pytest

from trainlib._execution.waiting import pause
from trainlib.sgd import SGDIterator


def test_results_come_while_it_runs_and_the_returned_values_at_the_end():
    may_end = threading.Event()

    def run(stream):
        stream.handle_result([{"epoch": 0}, {"epoch": 0}])
        stream.handle_result([{"epoch": 1}, {"epoch": 1}])
        may_end.wait(10)
        return ["a", "b"]

    iterator = SGDIterator(run)
    assert next(iterator) == [{"epoch": 0}, {"epoch": 0}]
    with pytest.raises(RuntimeError, match="iterate to the end first"):
        iterator.get_final_results()
    may_end.set()
    assert [results[0]["epoch"] for results in iterator] == [1]
    assert iterator.is_finished()
    assert iterator.get_final_results() == ["a", "b"]
    assert list(iterator) == []


def test_with_force_the_rest_is_not_looked_at():
    def run(stream):
        stream.handle_result([{"epoch": 0}])
        return ["a"]

    iterator = SGDIterator(run)
    assert iterator.get_final_results(force=True) == ["a"]
    assert list(iterator) == []


def test_what_it_failed_with_comes_after_its_results():
    def run(stream):
        stream.handle_result([{"epoch": 0}])
        raise ValueError("a banana")

    iterator = SGDIterator(run)
    assert next(iterator) == [{"epoch": 0}]
    with pytest.raises(ValueError, match="a banana"):
        next(iterator)
    with pytest.raises(ValueError, match="a banana"):
        iterator.get_final_results()


def test_close_ends_what_it_waits_for():
    def run(stream):
        stream.handle_result([{"epoch": 0}])
        pause(60)
        return []

    iterator = SGDIterator(run)
    next(iterator)
    iterator.close()
    assert iterator.is_finished()
    assert list(iterator) == []
