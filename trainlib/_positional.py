"""Settings that can be written as in Ray's guides: by position, with the names of their time, and with a short ``repr``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel

__all__ = ["PositionalSettings"]


class PositionalSettings(BaseModel):
    """A pydantic model that takes what the dataclass of the same name takes in the guides.

    Example:
        >>> from pydantic import Field
        >>> class Limits(PositionalSettings):
        ...     positions = ("low", "high")
        ...     renamed = {"top": "high"}
        ...     low: int = Field(default=0)
        ...     high: int = Field(default=9)
        >>> Limits(0, 5)
        Limits(high=5)
    """

    positions: ClassVar[tuple[str, ...]] = ()
    """The order of the arguments that may be passed by position."""
    renamed: ClassVar[dict[str, str]] = {}
    """Former names of settings, and their names of today."""
    elsewhere: ClassVar[dict[str, str]] = {}
    """Settings of the guides' library that are not needed here, and what to do instead. ``None``, ``False`` and 0 leave them
    off, and are taken."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(**self._by_name(args, values))

    @classmethod
    def _by_name(cls, args: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        """The arguments of ``__init__``, which calls this itself, by the names of today.

        Raises:
            TypeError: there are too many of them, or one was passed twice.
            ValueError: a setting is not needed here.
        """
        _require_places(cls, args, values)
        named = {**dict(zip(cls.positions, args, strict=False)), **values}
        for former, today in cls.renamed.items():
            if former not in named:
                continue
            if named.get(today) is not None:
                raise TypeError(f"{former} and {today} of {cls.__name__} are the same setting: pass {today} alone")
            note = f"{cls.__name__}({former}=...) is deprecated: write {today}=..."
            warnings.warn(note, DeprecationWarning, stacklevel=3)
            named[today] = named.pop(former)
        for name, instead in cls.elsewhere.items():
            if named.pop(name, None):
                raise ValueError(f"{cls.__name__} has no {name}: {instead}")
        return named

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Only what differs from the default."""
        for name, value in super().__repr_args__():
            field = type(self).model_fields.get(name or "")
            if field is None or value != field.get_default(call_default_factory=True):
                yield name, value


def _require_places(cls: type[PositionalSettings], args: tuple[Any, ...], values: dict[str, Any]) -> None:
    if len(args) > len(cls.positions):
        places = ", ".join(cls.positions) or "none"
        raise TypeError(f"{cls.__name__} got {len(args)} arguments by position. These have one: {places}")
    if twice := [name for name in cls.positions[: len(args)] if name in values]:
        raise TypeError(f"{cls.__name__} got {', '.join(twice)} twice: by position and by name")
