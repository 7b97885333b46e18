"""A point of a search space, and how it is stored: as JSON, so that whoever can write to the registry runs no code here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trainlib._secrets import masked
from trainlib.tune._domains import Param, label

__all__ = ["Path", "Point"]

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Point:
    """One point of a search space."""

    number: int
    params: dict[str, Param]
    distributions: dict[str, str] = field(default_factory=dict)
    """The distribution of each param, as JSON. A sampler needs it to learn from the point."""
    computed: dict[str, Any] = field(default_factory=dict)
    """The values of ``sample_from``."""
    changed: dict[Path, Any] = field(default_factory=dict)
    """The values that population based training has changed since."""

    def with_changes(self, changes: Mapping[Path, Any]) -> Point:
        return replace(self, changed={**self.changed, **changes})

    def dumps(self) -> str:
        """The point as JSON. Secrets that were computed, and objects that JSON has no form for, are left out: see :meth:`loads`."""
        return json.dumps(
            {
                "number": self.number,
                "params": self.params,
                "distributions": self.distributions,
                "computed": {
                    name: _encoded(value) for name, value in self.computed.items() if _may_be_stored(name, value)
                },
                "changed": [
                    [list(path), _encoded(value if _is_plain(value) else NotStored(label(value)))]
                    for path, value in self.changed.items()
                ],
            }
        )

    @classmethod
    def loads(cls, text: str) -> Point:
        """The point that :meth:`dumps` gave.

        Objects and secrets that ``sample_from`` computed are missing, and are computed again. Objects that population based training
        chose are :class:`NotStored`, and the point has no config.

        Raises:
            ValueError: the text is something else.
        """
        try:
            kept = json.loads(text)
            return cls(
                number=int(kept["number"]),
                params=dict(kept["params"]),
                distributions=dict(kept["distributions"]),
                computed={name: _decoded(value) for name, value in kept["computed"].items()},
                changed={tuple(path): _decoded(value) for path, value in kept["changed"]},
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{text[:60]!r} is not the point of a trial: {error}") from None


@dataclass(frozen=True)
class NotStored:
    """An object that was not stored; only its label was."""

    label: str


def _may_be_stored(name: str, value: Any) -> bool:
    return _is_plain(value) and masked(value, name) == value


def _is_plain(value: Any) -> bool:
    try:
        _encoded(value)
    except TypeError:
        return False
    return True


def _encoded(value: Any) -> Any:
    """A value in terms of JSON. What JSON has no form for is an object with one key, which names the type."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encoded(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_encoded(key), _encoded(item)] for key, item in value.items()]}
    if isinstance(value, NotStored):
        return {"not stored": value.label}
    if (number := _number_of(value)) is not None:
        return number
    raise TypeError(f"JSON has no form for a {type(value).__name__}")


def _number_of(value: Any) -> bool | int | float | None:
    """The plain number that a scalar of NumPy or another library stands for."""
    item = value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else None
    return item if type(item) in (bool, int, float) else None


def _decoded(value: Any) -> Any:
    match value:
        case list():
            return [_decoded(item) for item in value]
        case {"tuple": items}:
            return tuple(_decoded(item) for item in items)
        case {"dict": items}:
            return {_decoded(key): _decoded(item) for key, item in items}
        case {"not stored": text}:
            return NotStored(str(text))
    return value
