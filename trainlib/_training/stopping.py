"""When ``RunConfig.stop`` ends a training. Pure."""

from __future__ import annotations

from typing import Any

from trainlib._execution.reported import is_number
from trainlib._flat import flattened
from trainlib.config import RunConfig, Stop


def should_stop(stop: Stop, trial_id: str, result: dict[str, Any]) -> bool:
    """Whether a result reaches a bound, or the user's function says so. What is no number reaches none.

    Example:
        >>> should_stop({"training_iteration": 2}, "a", {"training_iteration": 2})
        True
        >>> should_stop({"val/acc": 0.9}, "a", {"val": {"acc": 0.8}})
        False
    """
    if stop is None:
        return False
    if callable(stop):
        return bool(stop(trial_id, result)) or stops_all(stop)
    if not stop.keys() <= result.keys():
        result = {**flattened(result), **result}  # nested metrics have names such as val/loss
    return any(is_number(result.get(metric)) and result[metric] >= bound for metric, bound in stop.items())


def stops_all(stop: Any) -> bool:
    """Whether a stopper ends everything it is asked about: a whole sweep, or a single training."""
    return hasattr(stop, "stop_all") and bool(stop.stop_all())


def unending(ends_by_itself: bool, config: RunConfig) -> str | None:
    """What to say of a training that nothing would end. None if something may.

    Args:
        ends_by_itself: Whether its training function returns some time.
        config: Its limits.

    Example:
        >>> unending(True, RunConfig()), unending(False, RunConfig(max_time_s=60))
        (None, None)
    """
    if ends_by_itself or config.stop is not None or config.max_time_s is not None:
        return None
    return (
        "This training has no end: set one, e.g. RunConfig(stop={'training_iteration': 10}) or RunConfig(max_time_s=600). Until then, "
        "Ctrl-C or `trainlib cancel` ends it, and its newest checkpoint is kept"
    )
