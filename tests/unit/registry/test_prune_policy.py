"""Which checkpoints a policy gives up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlib._registry.prune_policy import DatedCheckpoint, Policy, Reason, RunCheckpoints, choose
from trainlib._registry.retention import SavedCheckpoint

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def run_with(accuracies: list[float], *, is_running: bool = False, is_over: bool = True) -> RunCheckpoints:
    """A run that has saved a checkpoint a day, the last one yesterday."""
    checkpoints = [
        DatedCheckpoint(
            SavedCheckpoint(index, index + 1, f"m-{index}", f"/m-{index}", metrics={"accuracy": accuracy}),
            NOW - timedelta(days=len(accuracies) - index),
        )
        for index, accuracy in enumerate(accuracies)
    ]
    return RunCheckpoints("run", "digits", is_running, is_over, tuple(checkpoints))


def fates(run: RunCheckpoints, policy: Policy, registered: set[str] = frozenset(), forked: set[str] = frozenset()):
    found = choose(run, policy, registered=frozenset(registered), forked=frozenset(forked), now=NOW)
    return list(found.values())


def test_the_newest_stay_or_the_best_by_a_metric():
    run = run_with([0.9, 0.5, 0.7])
    assert fates(run, Policy(keep=1)) == [None, None, Reason.KEPT]
    assert fates(run, Policy(keep=1, metric="accuracy")) == [Reason.KEPT, None, None]
    assert fates(run, Policy(keep=1, metric="accuracy", mode="min")) == [None, Reason.KEPT, None]
    assert fates(run, Policy(keep=2, metric="accuracy")) == [Reason.KEPT, None, Reason.KEPT]
    assert fates(run, Policy(keep=0)) == [None, None, None]


def test_young_ones_stay():
    assert fates(run_with([0.1, 0.2, 0.3]), Policy(keep=0, older_than_days=1.5)) == [None, None, Reason.YOUNG]


@pytest.mark.parametrize(
    ("run", "given", "why"),
    [
        (run_with([0.1], is_running=True), {}, Reason.RUNNING),
        (run_with([0.1], is_over=False), {}, Reason.RESUMABLE),
        (run_with([0.1]), {"registered": {"m-0"}}, Reason.REGISTERED),
        (run_with([0.1]), {"forked": {"m-0"}}, Reason.FORKED),
    ],
)
def test_what_somebody_may_need_stays_whatever_the_policy_says(run, given, why):
    assert fates(run, Policy(keep=0), **given) == [why]


@given(
    st.lists(st.floats(), max_size=6),
    st.integers(0, 7),
    st.sampled_from([None, "accuracy", "unknown"]),
    st.floats(0, 10),
    st.sets(st.integers(0, 5).map("m-{}".format)),
    st.booleans(),
)
def test_no_policy_deletes_what_is_needed(accuracies, keep, metric, days, registered, is_over):
    run = run_with(accuracies, is_over=is_over)
    policy = Policy(keep=keep, metric=metric, older_than_days=days)
    gone = [
        each.saved.model_id
        for each, fate in zip(run.checkpoints, fates(run, policy, registered), strict=True)
        if fate is None
    ]
    assert not set(gone) & registered
    assert len(accuracies) - len(gone) >= min(keep, len(accuracies))
    if run.checkpoints and not is_over:
        assert run.checkpoints[-1].saved.model_id not in gone
