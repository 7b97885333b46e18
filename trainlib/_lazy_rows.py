"""Rows that are made when they are asked for, so that a long training's need not be in memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, overload

__all__ = ["LazyRows", "Row"]

Row = dict[str, Any]


class LazyRows(Sequence[Row]):
    """Looks like a list of rows. What has to hold them all, such as an index, makes that list first.

    Pickled, it is a list: what the rows are made from stays where it is.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[Row]: ...

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return list(self)[index]

    def __reduce__(self) -> tuple[type[list[Row]], tuple[list[Row]]]:
        return list, (list(self),)
