"""Any value as JSON or as text, for files that people read. Nothing in a value is a reason to fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

__all__ = ["as_json", "jsonable", "text_of"]

_KEYS = (str, int, float, bool, type(None))
_MOST_LEVELS = 50
_KNOWN_TO_JSON = (*_KEYS, list, tuple, dict)


def as_json(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON. Numbers and arrays of other libraries are Python's own there, and what JSON has no word for is text.

    Example:
        >>> from datetime import date
        >>> as_json({"day": date(2026, 1, 31), (3, 4): {1}})
        '{"day": "2026-01-31", "(3, 4)": "{1}"}'
    """
    try:
        return json.dumps(value, default=_written, indent=indent)
    except (TypeError, ValueError, RecursionError):  # a key that is no text, or something that contains itself
        return json.dumps(_spelled_out(value, ()), indent=indent)


def jsonable(value: Any) -> Any:
    """What json is to write for a value that it does not know: an array as a list, and a date as ISO 8601 has it.

    Example:
        >>> import numpy as np
        >>> json.dumps({"per class": np.array([0.5, 1.0])}, default=jsonable)
        '{"per class": [0.5, 1.0]}'

    Raises:
        TypeError: it is anything else.
    """
    for convert in ("tolist", "isoformat"):
        try:
            return getattr(value, convert)()
        except Exception:  # it has none, or one of its own that means something else
            continue
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def text_of(value: Any, spell: Callable[[Any], str] = repr) -> str:
    """What ``repr`` or ``str`` says of a value, or the name of its class if that fails.

    Example:
        >>> text_of((1, "a"))
        "(1, 'a')"
    """
    try:
        return spell(value)
    except Exception:  # it is code of the user
        return f"<{type(value).__name__}>"


def _written(value: Any) -> Any:
    try:
        return jsonable(value)
    except TypeError:
        return text_of(value)


def _spelled_out(value: Any, around: tuple[int, ...]) -> Any:
    """A copy of a value in which JSON knows everything; ``around`` are the ids of what it is in."""
    if not isinstance(value, _KNOWN_TO_JSON):
        value = _written(value)
    if isinstance(value, _KEYS):
        return value
    if id(value) in around or len(around) == _MOST_LEVELS:
        return "..."
    around = (*around, id(value))
    if isinstance(value, dict):
        return {
            key if isinstance(key, _KEYS) else text_of(key): _spelled_out(item, around) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_spelled_out(item, around) for item in value]
    return text_of(value)
