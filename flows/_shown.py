"""What the Prefect UI shows of values that were passed from Python. They are used as they are; this is for people.

Secrets are masked, and what is large is shortened.
"""

from __future__ import annotations

import json
from typing import Any

from trainlib._secrets import MASK, SecretText, masked

__all__ = ["shown"]

_LONGEST_TEXT = 1000
_MOST_ITEMS = 100
_DEEPEST = 8
# Prefect refuses parameters that take more than 512 KB in all.
_LARGEST = 100_000
_LARGEST_INTEGER = 2**63


def shown(value: Any) -> Any:
    """A value as a form can show it: plain data as it is, anything else as text.

    Example:
        >>> shown({"lr": 0.1, "layers": (1, 2), "activation": len})
        {'lr': 0.1, 'layers': [1, 2], 'activation': '<built-in function len>'}
    """
    whole = masked(_shown(value, 0))
    if len(json.dumps(whole)) <= _LARGEST:
        return whole
    if isinstance(whole, dict) and len(whole) <= _MOST_ITEMS:
        return {
            key: item if len(json.dumps(item)) <= _LONGEST_TEXT else _too_large(item) for key, item in whole.items()
        }
    return _too_large(whole)


def _shown(value: Any, depth: int) -> Any:
    if isinstance(value, (dict, list, tuple)) and depth >= _DEEPEST:
        return _too_large(value)
    if isinstance(value, dict):
        items = {_text(str(key)): _shown(item, depth + 1) for key, item in list(value.items())[:_MOST_ITEMS]}
        return items if len(value) <= _MOST_ITEMS else {**items, "…": f"{len(value)} items in all"}
    if isinstance(value, (list, tuple)):
        found = [_shown(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return found if len(value) <= _MOST_ITEMS else [*found, f"… {len(value)} items in all"]
    if isinstance(value, SecretText):
        return MASK
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        return f"an integer of {value.bit_length()} bits"
    return value if isinstance(value, (int, float, type(None))) else repr(value)[:200]


def _text(value: str) -> str:
    """A text that any database can hold."""
    short = value[:_LONGEST_TEXT].replace("\0", "\\0").encode(errors="backslashreplace").decode()
    return short if len(value) <= _LONGEST_TEXT else f"{short}… {len(value)} characters in all"


def _too_large(value: Any) -> str:
    return f"a {type(value).__name__} that is too large to be shown"
