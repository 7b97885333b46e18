"""The columns that all ranks have. Each rank reads its own share of the rows, and the blocks of a dataset may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainlib._boosting.exchange import ExchangeBytes, exchange_json
from trainlib._boosting.table import LabelledTable
from trainlib.errors import DataError

__all__ = ["agreed", "in_order", "with_equal_columns"]


def with_equal_columns(tables: Mapping[str, LabelledTable], exchange: ExchangeBytes) -> dict[str, LabelledTable]:
    """This rank's tables with their features in the order of rank 0. All ranks have to call this."""
    return in_order(tables, agreed(exchange_json(tables["train"].features.column_names, exchange)))


def agreed(columns: Sequence[Sequence[str]]) -> list[str]:
    """The features of ``train``, in the order that they have on rank 0. A model knows them by their places.

    Args:
        columns: The features of ``train``, by rank.

    Raises:
        DataError: a rank has a feature that another one lacks.

    Example:
        >>> agreed([["a", "b"], ["b", "a"]])
        ['a', 'b']
        >>> agreed([["a", "b"], ["b"]])
        Traceback (most recent call last):
        ...
        trainlib.errors.DataError: the dataset 'train' has no column 'a' in the rows of rank 1, but rank 0 has it. Give all rows the same columns
    """
    everyones = {name: rank for rank, names in reversed([*enumerate(columns)]) for name in names}
    for rank, names in enumerate(columns):
        for name, other in everyones.items():
            if name not in names:
                raise DataError(
                    f"the dataset 'train' has no column {name!r} in the rows of rank {rank}, but rank {other} has it. Give all rows the "
                    "same columns"
                )
    return [*columns[0]]


def in_order(tables: Mapping[str, LabelledTable], columns: Sequence[str]) -> dict[str, LabelledTable]:
    """The tables with their features in this order."""
    return {
        name: replace(table, features=table.features.select(list(columns)))
        if table.features.column_names != [*columns]
        else table
        for name, table in tables.items()
    }
