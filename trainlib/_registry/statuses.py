"""What MLflow calls the state of a run that a process has let go of."""

from __future__ import annotations

from trainlib._execution.waiting import SuspendedInThreadError

__all__ = ["SUSPENDED", "status_after"]

SUSPENDED = "SCHEDULED"
"""MLflow's word for a run that is not over, and that nobody works on now."""


def status_after(error: BaseException | None) -> str:
    """The status of a run that ended with an error, or without one.

    Example:
        >>> status_after(None), status_after(ValueError()), status_after(KeyboardInterrupt())
        ('FINISHED', 'FAILED', 'KILLED')
        >>> status_after(SuspendedInThreadError())
        'SCHEDULED'
    """
    if error is None:
        return "FINISHED"
    if isinstance(error, SuspendedInThreadError):
        return SUSPENDED
    return "FAILED" if isinstance(error, Exception) else "KILLED"
