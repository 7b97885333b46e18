"""Categories, which Arrow calls dictionaries: each block of rows has its own, and a model learns from their codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Categories", "categories_in", "encoded", "united"]

Categories = Mapping[str, Sequence[str]]
"""What the columns of categories may contain, by column."""


def categories_in(tables: Iterable[pa.Table]) -> dict[str, list[str]]:
    """What the columns of categories of some tables contain.

    Example:
        >>> import pyarrow as pa
        >>> categories_in([pa.table({"a": [1], "city": pa.array(["Ulm"]).dictionary_encode()})])
        {'city': ['Ulm']}
    """
    import pyarrow as pa

    found: dict[str, set[str]] = {}
    for table in tables:
        for name in table.column_names:
            if pa.types.is_dictionary(table[name].type):
                values = found.setdefault(name, set())
                values.update(each for chunk in table[name].chunks for each in chunk.dictionary.to_pylist())
    return {name: sorted(values - {None}) for name, values in found.items()}  # type: ignore[arg-type]


def united(each: Iterable[Categories]) -> dict[str, list[str]]:
    """All categories of several ranks, in an order that does not depend on that of the ranks.

    Example:
        >>> united([{"city": ["Ulm"]}, {"city": ["Bonn", "Ulm"]}])
        {'city': ['Bonn', 'Ulm']}
    """
    together: dict[str, set[str]] = {}
    for categories in each:
        for name, values in categories.items():
            together.setdefault(name, set()).update(values)
    return {name: sorted(values) for name, values in sorted(together.items())}


def encoded(table: pa.Table, categories: Categories) -> pa.Table:
    """A table whose columns of categories have these codes: the places in the list. No text is copied.

    Args:
        table: The rows.
        categories: All categories of its columns.
    """
    import pyarrow as pa
    from pyarrow import compute

    for place, name in enumerate(table.column_names):
        column = table[name]
        if not pa.types.is_dictionary(column.type):
            if name not in categories or column.null_count < len(column):
                continue
            column = pa.chunked_array([pa.nulls(len(column)).dictionary_encode()])  # others know what they are
        known = pa.array(categories[name], pa.string())
        chunks = []
        for chunk in column.chunks:
            codes = compute.index_in(chunk.dictionary.cast(pa.string()), value_set=known)
            chunks.append(pa.DictionaryArray.from_arrays(codes.take(chunk.indices), known))
        kind = pa.dictionary(pa.int32(), pa.string())
        table = table.set_column(place, name, pa.chunked_array(chunks, kind))
    return table
