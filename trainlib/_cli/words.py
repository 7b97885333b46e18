"""Facts in few words: times, durations and numbers, as tables show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

__all__ = ["duration", "metrics", "moment", "short_id", "size"]

_MOST_METRICS = 3


def duration(seconds: float) -> str:
    """How long something took.

    Example:
        >>> duration(0.42), duration(75), duration(7260), duration(200_000)
        ('0.4 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def moment(time: datetime) -> str:
    """A time, in the time zone of whoever reads it."""
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def metrics(values: Mapping[str, Any], names: Sequence[str] = ()) -> str:
    """Metrics on one line: those of these names, or else the first few.

    Example:
        >>> metrics({"loss": 0.123456, "accuracy": 1.0, "epoch": 3, "lr": 0.1})
        'loss=0.1235 accuracy=1 epoch=3 ...'
        >>> metrics({"loss": 0.123456, "accuracy": 1.0}, ["accuracy", "recall"])
        'accuracy=1'
    """
    chosen = [name for name in names if name in values] if names else list(values)
    shown = chosen if names else chosen[:_MOST_METRICS]
    text = " ".join(f"{name}={_number(values[name])}" for name in shown)
    return f"{text} ..." if len(shown) < len(chosen) else text


def short_id(run_id: str, is_short: bool) -> str:
    """The beginning of a run's id, which commands take too, where space is short.

    Example:
        >>> short_id("0123456789abcdef", True), short_id("0123456789abcdef", False)
        ('01234567', '0123456789abcdef')
    """
    return run_id[:8] if is_short else run_id


def size(number: float) -> str:
    """An amount of memory.

    Example:
        >>> size(512), size(3 * 1024**3)
        ('512 B', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
