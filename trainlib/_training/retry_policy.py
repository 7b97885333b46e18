"""Whether a failed attempt is made again. Pure, and the only place that decides it.

The training asks once for each failure and puts the answer into the error; Prefect's task reads it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from trainlib._execution.causes import Cause, cause_of
from trainlib.config import FailureConfig
from trainlib.errors import TrainingFailedError

__all__ = ["UNLIMITED", "Decision", "decide", "most_retries"]

# Prefect wants a number of retries. This many stands for "no limit".
UNLIMITED = 1_000_000


# What counts against ``max_failures``. An exception of the training function does so only if that is asked for.
_FAILURES = (Cause.WORKER, Cause.STORAGE, Cause.SERVICE)


class Decision(StrEnum):
    """What follows a failed attempt."""

    RETRY = "retry"
    """Another attempt, from the newest checkpoint."""
    GIVE_UP = "give up"
    """The training has failed."""


def decide(error: BaseException, failed_before: Sequence[Cause], config: FailureConfig) -> Decision:
    """What follows an attempt that failed with ``error``, after attempts that failed for the given causes.

    Example:
        >>> lost = TrainingFailedError("rank 1 died", cause=Cause.WORKER)
        >>> decide(lost, [], FailureConfig(max_failures=1))
        <Decision.RETRY: 'retry'>
        >>> decide(lost, [Cause.WORKER], FailureConfig(max_failures=1))
        <Decision.GIVE_UP: 'give up'>
        >>> decide(ValueError("a bug"), [], FailureConfig(max_failures=5))
        <Decision.GIVE_UP: 'give up'>
    """
    cause = error.cause if isinstance(error, TrainingFailedError) else cause_of(error)
    failures = [*failed_before, cause]
    if cause is Cause.PREEMPTED:
        spent, budget = failures.count(Cause.PREEMPTED), config.max_preemptions
    elif cause in _FAILURES or (cause is Cause.USER and config.retry_user_errors):
        spent, budget = sum(failures.count(each) for each in (*_FAILURES, Cause.USER)), config.max_failures
    else:
        return Decision.GIVE_UP
    return Decision.RETRY if budget < 0 or spent <= budget else Decision.GIVE_UP


def most_retries(config: FailureConfig) -> int:
    """How many retries Prefect may make in all; :func:`decide` keeps each budget within that."""
    if config.max_failures < 0 or config.max_preemptions < 0:
        return UNLIMITED
    return config.max_failures + config.max_preemptions
