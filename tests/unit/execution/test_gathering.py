"""Reports of all ranks are put together, in whatever order they come."""

from __future__ import annotations

from trainlib._execution.events import Report
from trainlib._execution.gathering import Gathering


def report(iteration: int, loss: float | None) -> Report:
    return Report(iteration, None if loss is None else {"loss": loss}, None, timestamp=10.5, seconds=0.25)


def test_an_iteration_is_complete_with_its_last_rank():
    gathering = Gathering(2)
    assert gathering.add(1, report(1, 0.1)) is None
    assert gathering.add(1, report(2, 0.2)) is None, "rank 1 is ahead"
    first = gathering.add(0, report(1, 0.0))
    assert first is not None
    assert first.iteration == 1
    assert [each.metrics for each in first.reports] == [{"loss": 0.0}, {"loss": 0.1}]
    second = gathering.add(0, report(2, 0.0))
    assert second is not None
    assert second.iteration == 2


def test_a_checkpoint_that_was_saved_without_a_report_counts_for_nothing():
    gathering = Gathering(1)
    assert gathering.add(0, report(0, None)) is None
    assert gathering.add(0, report(1, 0.5)) is not None
