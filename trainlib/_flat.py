"""Nested dicts by flat names, as metrics and columns have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["SEPARATOR", "flattened"]

SEPARATOR = "/"


def flattened(tree: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a nested dict. An empty dict is a value, and so is a list.

    Example:
        >>> flattened({"loss": 0.5, "val": {"acc": 1, "per class": [1, 0]}})
        {'loss': 0.5, 'val/acc': 1, 'val/per class': [1, 0]}
    """
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat.update(flattened(value, f"{name}{SEPARATOR}"))
        else:
            flat[name] = value
    return flat
