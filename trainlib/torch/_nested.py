"""Tensors in containers: what a data loader yields, and what a model returns."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["map_tensors"]


def map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of ``value`` in which ``change`` was applied to everything that is no container.

    Containers are dicts, lists, tuples, named tuples and dataclasses. They keep their types.
    """
    if isinstance(value, dict):
        changed = copy.copy(value)  # a defaultdict, say, cannot be made from a dict alone
        for key, item in value.items():
            changed[key] = map_tensors(item, change)
        return changed
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(item, change) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(item, change) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        copied: Any = copy.copy(value)
        for field in dataclasses.fields(value):
            if hasattr(value, field.name):
                object.__setattr__(copied, field.name, map_tensors(getattr(value, field.name), change))
        return copied
    return change(value)
