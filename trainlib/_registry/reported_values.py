"""What was reported and is no number: the latest of each is a tag of the run, since MLflow's metrics are numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from trainlib._json_text import jsonable
from trainlib._registry.names import stored_name

__all__ = ["ReportedValues", "as_text"]

PREFIX = "reported."
# MLflow's own limit for the value of a tag.
LONGEST = 8000
# A function may report a thousand times in a second, and only the latest value counts.
_PAUSE_S = 1.0


def as_text(value: Any) -> str | None:
    """A value as a tag has it: text as it is, and anything else as JSON. None if it has no such form, or is too long.

    Example:
        >>> as_text("warm-up"), as_text([1, 0.5]), as_text(None), as_text(object())
        ('warm-up', '[1, 0.5]', 'null', None)
    """
    try:
        text = value if isinstance(value, str) else json.dumps(value, default=jsonable, ensure_ascii=False)
        text.encode()  # half of a surrogate pair is no text for a database
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= LONGEST and "\0" not in text else None


class ReportedValues:
    """The latest values of a training that are no numbers, on their way to the tags of its run."""

    def __init__(self) -> None:
        self._latest: dict[str, Any] = {}
        """Those that have been reported since tags were last given."""
        self._tags: dict[str, str] = {}
        self._not_stored: set[str] = set()
        self._due = 0.0

    def add(self, values: Mapping[str, Any]) -> None:
        """Take in the values of a report, by flat names."""
        self._latest.update(values)

    @property
    def is_due(self) -> bool:
        """Whether there is something to write, and the last time is a second ago."""
        return bool(self._latest) and time.monotonic() >= self._due

    def changed(self) -> tuple[dict[str, str], list[str]]:
        """The tags that have changed since they were last given, and what a person should know about them."""
        latest, self._latest = self._latest, {}
        self._due = time.monotonic() + _PAUSE_S
        tags, cannot = {}, []
        for name, value in latest.items():
            key, text = stored_name(PREFIX + name), as_text(value)
            if text is None:
                cannot += [f"{name!r} ({_described(value)})"] if name not in self._not_stored else []
                self._not_stored.add(name)
            elif self._tags.get(key) != text:
                tags[key] = self._tags[key] = text
        if not cannot:
            return tags, []
        which = ", ".join(cannot)
        return tags, [f"MLflow cannot store {which} of what was reported. result.metrics and callbacks have it."]


def _described(value: Any) -> str:
    kind = type(value).__name__
    if isinstance(value, str):
        return f"a str of {len(value)} character{'s' if len(value) != 1 else ''}"
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
