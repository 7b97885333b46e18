"""The life of a trial, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlib import TrainingFailedError
from trainlib._execution.causes import Cause
from trainlib._execution.waiting import CancelledInThreadError
from trainlib._registry.attempts import Outcome
from trainlib.tune._life import TrialState, after_run, at_end_of_sweep, recalled

FAILED = TrainingFailedError("a bug", cause=Cause.USER)
NO_ROOM = TrainingFailedError("no room", cause=Cause.CAPACITY)
CANCELLED = CancelledInThreadError()


@pytest.mark.parametrize(
    ("outcome", "error", "sweep_ends", "others_run", "state"),
    [
        (Outcome.FINISHED, None, False, False, TrialState.TERMINATED),
        (Outcome.FINISHED, None, True, False, TrialState.TERMINATED),
        (Outcome.STOPPED, None, False, True, TrialState.STOPPED),
        (Outcome.STOPPED, None, True, True, TrialState.STOPPED),
        (Outcome.TIME_LIMIT, None, False, True, TrialState.STOPPED),
        (Outcome.NAN, None, True, True, TrialState.STOPPED),
        (Outcome.DIVERGED, None, False, False, TrialState.STOPPED),
        (Outcome.PAUSED, None, False, True, TrialState.PAUSED),
        (Outcome.PAUSED, None, True, True, TrialState.TERMINATED),
        (Outcome.CUT_OFF, None, True, True, TrialState.CANCELLED),
        (Outcome.FINISHED, FAILED, False, True, TrialState.ERROR),
        (Outcome.PAUSED, FAILED, False, True, TrialState.ERROR),
        (Outcome.FINISHED, NO_ROOM, False, True, TrialState.PENDING),
        (Outcome.FINISHED, NO_ROOM, False, False, TrialState.ERROR),
        (Outcome.FINISHED, CANCELLED, True, True, TrialState.CANCELLED),
        (Outcome.STOPPED, CANCELLED, True, False, TrialState.CANCELLED),
    ],
)
def test_what_a_trial_is_after_it_ran(outcome, error, sweep_ends, others_run, state):
    assert after_run(outcome, error, sweep_ends=sweep_ends, others_run=others_run) is state


@pytest.mark.parametrize(
    ("has_run", "failed", "state"),
    [
        (True, False, TrialState.TERMINATED),
        (True, True, TrialState.CANCELLED),
        (False, False, TrialState.CANCELLED),
        (False, True, TrialState.CANCELLED),
    ],
)
def test_what_a_waiting_trial_is_when_its_sweep_ends(has_run, failed, state):
    assert at_end_of_sweep(has_run=has_run, failed=failed) is state


@pytest.mark.parametrize(
    ("status", "outcome", "resume_errored", "state"),
    [
        ("FINISHED", Outcome.FINISHED, False, TrialState.TERMINATED),
        ("FINISHED", Outcome.STOPPED, False, TrialState.STOPPED),
        ("FINISHED", Outcome.NAN, False, TrialState.STOPPED),
        ("RUNNING", Outcome.TIME_LIMIT, False, TrialState.STOPPED),
        ("FINISHED", Outcome.PAUSED, False, TrialState.TERMINATED),
        ("RUNNING", Outcome.FINISHED, False, TrialState.TERMINATED),
        ("RUNNING", Outcome.STOPPED, False, TrialState.STOPPED),
        ("RUNNING", Outcome.PAUSED, False, TrialState.PENDING),
        ("RUNNING", Outcome.CUT_OFF, False, TrialState.PENDING),
        ("RUNNING", None, False, TrialState.PENDING),
        ("KILLED", Outcome.CANCELLED, False, TrialState.PENDING),
        ("SCHEDULED", Outcome.SUSPENDED, False, TrialState.PENDING),
        ("FAILED", Outcome.USER, False, TrialState.ERROR),
        ("FAILED", Outcome.USER, True, TrialState.PENDING),
    ],
)
def test_what_a_trial_of_an_earlier_process_is(status, outcome, resume_errored, state):
    assert recalled(status, outcome, resume_errored=resume_errored) is state


def test_a_state_is_final_waiting_or_running():
    for state in TrialState:
        assert [state.is_final, state.waits, state is TrialState.RUNNING].count(True) == 1


@given(
    st.sampled_from(Outcome),
    st.none() | st.sampled_from(Cause).map(lambda cause: TrainingFailedError("it failed", cause=cause)),
    st.booleans(),
    st.booleans(),
)
def test_a_trial_whose_workers_are_free_waits_or_has_ended(outcome, error, sweep_ends, others_run):
    state = after_run(outcome, error, sweep_ends=sweep_ends, others_run=others_run)
    assert state.waits or state.is_final
    assert not (error is not None and state in (TrialState.TERMINATED, TrialState.STOPPED))
    assert not (sweep_ends and state is TrialState.PAUSED)
    assert at_end_of_sweep(has_run=True, failed=error is not None).is_final


@given(
    st.sampled_from(["RUNNING", "FINISHED", "FAILED", "KILLED"]), st.none() | st.sampled_from(Outcome), st.booleans()
)
def test_a_trial_of_an_earlier_process_waits_or_has_ended(status, outcome, resume_errored):
    state = recalled(status, outcome, resume_errored=resume_errored)
    assert state.waits or state.is_final
