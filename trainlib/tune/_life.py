"""The life of a trial: which state follows which. Pure."""

from __future__ import annotations

from enum import StrEnum

from trainlib._execution.causes import Cause
from trainlib._execution.waiting import CancelledInThreadError
from trainlib._registry.attempts import Outcome

__all__ = ["TrialState", "after_run", "at_end_of_sweep", "recalled"]

# How attempts end early that are no failures: by a scheduler, or by a limit of RunConfig.
_STOPPED = (Outcome.STOPPED, Outcome.TIME_LIMIT, Outcome.NAN, Outcome.DIVERGED)


class TrialState(StrEnum):
    """Where a trial is in its life."""

    PENDING = "pending"
    """Chosen, and waiting for room."""
    RUNNING = "running"
    """Its workers train."""
    PAUSED = "paused"
    """Its workers train another trial for now; it goes on from its newest checkpoint."""
    TERMINATED = "terminated"
    """Its function returned, or reached what ``RunConfig.stop`` asks for."""
    STOPPED = "stopped"
    """The scheduler, or a limit of ``RunConfig``, ended it early. Not a failure."""
    ERROR = "error"
    """It failed, and its failure budget is spent."""
    CANCELLED = "cancelled"
    """The sweep was cancelled, or failed, before it ended."""

    @property
    def waits(self) -> bool:
        """Whether it is still to be run."""
        return self in (TrialState.PENDING, TrialState.PAUSED)

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes of it."""
        return not self.waits and self is not TrialState.RUNNING


def after_run(outcome: Outcome, error: BaseException | None, *, sweep_ends: bool, others_run: bool) -> TrialState:
    """The state of a trial whose workers are free again.

    Args:
        outcome: How its last attempt ended, if it did not fail.
        error: What it failed with, if it did.
        sweep_ends: Whether no more trials are started.
        others_run: Whether other trials are running.
    """
    if isinstance(error, CancelledInThreadError):
        return TrialState.CANCELLED
    if error is not None:
        # Another program was quicker to take the room: there will be some when another trial ends.
        waits = getattr(error, "cause", None) is Cause.CAPACITY and others_run
        return TrialState.PENDING if waits else TrialState.ERROR
    match outcome:
        case Outcome.CUT_OFF:
            return TrialState.CANCELLED
        case Outcome.PAUSED:
            return TrialState.TERMINATED if sweep_ends else TrialState.PAUSED
        case _:
            return TrialState.STOPPED if outcome in _STOPPED else TrialState.TERMINATED


def at_end_of_sweep(*, has_run: bool, failed: bool) -> TrialState:
    """The state of a trial that still waits when its sweep ends.

    Args:
        has_run: Whether it has a result from before it was paused, or from an earlier process.
        failed: Whether the sweep failed or was cancelled.
    """
    return TrialState.TERMINATED if has_run and not failed else TrialState.CANCELLED


def recalled(status: str, outcome: Outcome | None, *, resume_errored: bool) -> TrialState:
    """The state of a trial that an earlier process of the sweep began.

    Args:
        status: What MLflow says about its run.
        outcome: How its last attempt ended; None if none has.
        resume_errored: Whether trials that failed are run again.
    """
    # One that had ended counts as such, even if its process was killed before it could end the run.
    if status in ("FINISHED", "RUNNING") and outcome in (Outcome.FINISHED, *_STOPPED):
        return TrialState.STOPPED if outcome in _STOPPED else TrialState.TERMINATED
    if status == "FINISHED":  # the sweep's time was over before it had its turn again
        return TrialState.TERMINATED
    if status == "FAILED" and not resume_errored:
        return TrialState.ERROR
    return TrialState.PENDING
