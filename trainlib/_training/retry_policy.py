"""Whether a failed attempt is made again, and how soon. Pure, and the only place that decides it.

The training asks once for each failure and puts the answer into the error; Prefect's task reads it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainlib._execution.causes import Cause
from trainlib._execution.origin import Origin
from trainlib.config import FailureConfig
from trainlib.errors import TrainingFailedError

__all__ = ["LONGEST_PAUSE_S", "UNLIMITED", "Decision", "Failure", "decide", "most_retries", "pause_before_retry"]

# Prefect wants a number of retries. This many stands for "no limit".
UNLIMITED = 1_000_000


# What counts against ``max_failures``.
_FAILURES = (Cause.WORKER, Cause.STORAGE, Cause.SERVICE, Cause.USER)

# What a retry without a pause would meet again: a disk that is full, a server that is away.
_LASTING = (Cause.STORAGE, Cause.SERVICE)
_FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0


class Decision(StrEnum):
    """What follows a failed attempt."""

    RETRY = "retry"
    """Another attempt, from the newest checkpoint."""
    GIVE_UP = "give up"
    """The training has failed."""
    GIVE_UP_REPEATED = "give up repeated"
    """The training has failed, although its budget is not spent: it raises the same exception over and over."""


@dataclass(frozen=True)
class Failure:
    """What is known of a failed attempt when it is decided whether another one is made."""

    cause: Cause
    raised_at: Origin | None = None
    """What the training function raised, and where, if it did. Of several ranks, that of the one that failed first."""
    checkpoint: int | None = None
    """The number of the newest checkpoint when it failed; None if there was none."""

    @classmethod
    def of(cls, error: TrainingFailedError, checkpoint: int | None) -> Failure:
        return cls(error.cause, error.raised_at, checkpoint)

    def repeats(self, earlier: Failure) -> bool:
        """Whether the training function has raised the same as in an earlier attempt, and has come no further since."""
        is_same = self.raised_at is not None and self.raised_at == earlier.raised_at
        return is_same and self.checkpoint == earlier.checkpoint


def decide(failure: Failure, before: Sequence[Failure], config: FailureConfig) -> Decision:
    """What follows an attempt that failed, after those that failed ``before``.

    An exception may be a bug, which comes again however often it is tried, or the way in which a lost peer, a full GPU or a
    store that was away shows. So one that comes again, without a checkpoint in between, counts as a bug. What was raised
    outside of the training function, e.g. while the framework was set up, comes again too.

    Example:
        >>> lost = Failure(Cause.WORKER)
        >>> decide(lost, [], FailureConfig(max_failures=1))
        <Decision.RETRY: 'retry'>
        >>> decide(lost, [lost], FailureConfig(max_failures=1))
        <Decision.GIVE_UP: 'give up'>
        >>> raised = Failure(Cause.USER, Origin("builtins.ValueError", "train.py", 7))
        >>> decide(raised, [raised], FailureConfig(max_failures=5))
        <Decision.GIVE_UP_REPEATED: 'give up repeated'>
    """
    if failure.cause is Cause.PREEMPTED:
        spent, budget = _count([*before, failure], Cause.PREEMPTED), config.max_preemptions
    elif failure.cause in _FAILURES:
        spent, budget = _count([*before, failure], *_FAILURES), config.max_failures
    else:
        return Decision.GIVE_UP
    if 0 <= budget < spent:
        return Decision.GIVE_UP
    return _about_user_error(failure, before, config) if failure.cause is Cause.USER else Decision.RETRY


def _about_user_error(failure: Failure, before: Sequence[Failure], config: FailureConfig) -> Decision:
    if config.retry_user_errors == "always":
        return Decision.RETRY
    if config.retry_user_errors == "never" or failure.raised_at is None:
        return Decision.GIVE_UP
    return Decision.GIVE_UP_REPEATED if any(map(failure.repeats, before)) else Decision.RETRY


def _count(failures: Sequence[Failure], *causes: Cause) -> int:
    return sum(failure.cause in causes for failure in failures)


def pause_before_retry(failures: Sequence[Cause]) -> float:
    """How many seconds to wait before the next attempt, after attempts that failed for these causes.

    A store or a server may stay away for long. So the pause doubles with each such failure in a row, up to five minutes.

    Example:
        >>> pause_before_retry([Cause.STORAGE]), pause_before_retry([Cause.STORAGE, Cause.SERVICE])
        (1.0, 2.0)
        >>> pause_before_retry([Cause.STORAGE, Cause.WORKER])
        0.0
    """
    in_a_row = 0
    for cause in reversed(failures):
        if cause not in _LASTING:
            break
        in_a_row += 1
    if in_a_row == 0:
        return 0.0
    doublings = min(in_a_row - 1, 16)  # far beyond the longest pause; without a limit, the power would overflow
    return min(_FIRST_PAUSE_S * 2.0**doublings, LONGEST_PAUSE_S)


def most_retries(config: FailureConfig) -> int:
    """How many retries Prefect may make in all; :func:`decide` keeps each budget within that."""
    if config.max_failures < 0 or config.max_preemptions < 0:
        return UNLIMITED
    return config.max_failures + config.max_preemptions
