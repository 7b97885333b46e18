"""When ``RunConfig.stop`` ends a training. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def should_stop(
    stop: Mapping[str, float] | Callable[[str, dict[str, Any]], bool] | None, trial_id: str, result: dict[str, Any]
) -> bool:
    """Whether a result reaches a bound, or the user's function says so.

    Example:
        >>> should_stop({"training_iteration": 2}, "a", {"training_iteration": 2})
        True
    """
    if stop is None:
        return False
    if callable(stop):
        return bool(stop(trial_id, result)) or stops_all(stop)
    return any(metric in result and result[metric] >= bound for metric, bound in stop.items())


def stops_all(stop: Any) -> bool:
    """Whether a stopper ends all that it is asked about: a sweep, or the one training that there is."""
    return hasattr(stop, "stop_all") and bool(stop.stop_all())
