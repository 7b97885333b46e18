"""When ``RunConfig.stop`` ends a training. Pure."""

from __future__ import annotations

from typing import Any

from trainlib._execution.reported import is_number
from trainlib._flat import flattened
from trainlib.config import Stop


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
