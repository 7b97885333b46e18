"""When ``RunConfig.stop`` ends a training. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from trainlib._execution.reported import is_number
from trainlib._flat import SEPARATOR, flattened
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


def unreported(ends_by_itself: bool, stop: Stop, result: Mapping[str, Any]) -> str | None:
    """What to say of bounds on metrics that a training's first report does not have. None if it has them all.

    Who waits for a metric that is never reported waits for ever, if the training has no other end.

    Args:
        ends_by_itself: Whether its training function returns some time.
        stop: What should end it.
        result: Its first report, with everything that is filled in automatically.

    Example:
        >>> print(unreported(False, {"episode_reward_mean": 150}, {"env_runners": {"episode_return_mean": 21.5}}))
        RunConfig.stop: the first report has no 'episode_reward_mean'. Did you mean 'env_runners/episode_return_mean'? It may still be reported \
later; until then, it does not end this training
    """
    if ends_by_itself or stop is None or callable(stop):
        return None
    numbers = [name for name, value in {**flattened(result), **result}.items() if is_number(value)]
    missing = [name for name in stop if name not in numbers]
    if not missing:
        return None
    meant = dict.fromkeys(found for name in missing if (found := _most_similar(name, numbers)) is not None)
    hint = f" Did you mean {' and '.join(map(repr, meant))}?" if meant else ""
    what, does = ("It", "it does") if len(missing) == 1 else ("They", "they do")
    return (
        f"RunConfig.stop: the first report has no {' and no '.join(map(repr, missing))}.{hint} {what} may still be reported later; until "
        f"then, {does} not end this training"
    )


def _most_similar(name: str, known: Iterable[str]) -> str | None:
    """The metric that somebody may mean: one that is called so as a whole, or in another group."""
    by_last = {each.rpartition(SEPARATOR)[2]: each for each in reversed([*known])}  # the first of a name counts
    if found := difflib.get_close_matches(name.rpartition(SEPARATOR)[2], by_last, n=1, cutoff=0.7):
        return by_last[found[0]]
    return next(iter(difflib.get_close_matches(name, [*known], n=1)), None)
