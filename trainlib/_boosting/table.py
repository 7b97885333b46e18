"""A worker's rows as one Arrow table: what a library of boosted trees makes its matrix of, without copying rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.arguments import columns_named_in, require_column, require_names
from trainlib._boosting.labels import require_fit
from trainlib.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from trainlib._boosting.library import Library

__all__ = ["LabelledTable", "read_tables"]


@dataclass(frozen=True)
class LabelledTable:
    """One worker's share of a dataset."""

    name: str
    """The dataset's."""
    features: pa.Table
    labels: np.ndarray
    columns: dict[str, np.ndarray]
    """Other columns that are no features, such as weights, by what they are for. With ``qid``, which numbers queries from 0, the rows
    of a query follow each other."""
    waited_s: float = 0.0
    """Seconds until the first rows came, in which Ray starts to read."""

    @property
    def rows(self) -> int:
        return int(self.features.num_rows)


def read_tables(config: Mapping[str, Any], library: Library, *, categories: bool = True) -> dict[str, LabelledTable]:
    """Read this worker's share of all datasets, ``train`` first. The others have the features of ``train``, in the same order.

    Args:
        config: The trainer's arguments.
        library: What it trains with.
        categories: Whether features may be categories, which Arrow calls dictionaries.

    Raises:
        DataError: a column is missing or cannot be used, or a label is missing, or one that the objective cannot learn.
    """
    params, label, given = config["params"], config["label_column"], config.get("dmatrix_params") or {}
    names = session.current("get_dataset_shard").dataset_names
    left_out = {name for arguments in given.values() for name in columns_named_in(arguments, library.columns).values()}
    read: dict[str, LabelledTable] = {}
    for name in ("train", *(name for name in names if name != "train")):
        like = read["train"].features.column_names if read else None
        table, waited_s = _rows_of(name)
        read[name] = labelled(
            name,
            table,
            label,
            columns_named_in(given.get(name, {}), library.columns),
            left_out=left_out,
            like=like,
            categories=categories,
            not_in_names=library.not_in_names,
            waited_s=waited_s,
        )
        require_fit(
            read[name].labels,
            library.need_of(params),
            str(library.objective_in(params)),
            library.classes_in(params),
            f"the label {label!r} of the dataset {name!r}",
        )
    return read


def _rows_of(dataset: str) -> tuple[pa.Table, float]:
    """This worker's rows of a dataset, and how many seconds the first of them took."""
    import pyarrow as pa

    shard = session.get_dataset_shard(dataset)
    assert shard is not None, "the trainer has this dataset"
    batches: Any = iter(shard.iter_batches(batch_size=None, batch_format="pyarrow"))  # type: ignore[arg-type]
    begun = time.perf_counter()
    blocks = list(itertools.islice(batches, 1))
    waited = time.perf_counter() - begun
    blocks = [block for block in itertools.chain(blocks, batches) if block.num_rows]
    if not blocks:
        rank = session.get_world_rank()
        raise DataError(f"the dataset {dataset!r} has no rows for rank {rank}: use fewer workers, or more data")
    # Blocks of one dataset may differ in the width of a type, e.g. where one has missing values.
    return pa.concat_tables(blocks, promote_options="permissive"), waited


def labelled(
    dataset: str,
    table: pa.Table,
    label: str,
    others: Mapping[str, str],
    *,
    left_out: Collection[str] = (),
    like: Sequence[str] | None = None,
    categories: bool = True,
    not_in_names: str = "",
    waited_s: float = 0.0,
) -> LabelledTable:
    """The rows of a dataset, as features, labels and other columns.

    Args:
        dataset: Its name.
        table: Its rows.
        label: The column with the labels.
        others: Columns that are no features either, by what they are for, e.g. ``{"weight": "w"}``.
        left_out: More of them, which this dataset may have or not.
        like: The features that it has to have, in this order. Default: all other columns.
        categories: Whether features may be categories.
        not_in_names: Characters that their names may not have.
        waited_s: For :attr:`LabelledTable.waited_s`.

    Raises:
        DataError: a column is missing or cannot be used, or a label is missing.
    """
    where, rank = f"the dataset {dataset!r}", session.get_world_rank()
    require_column(label, table.column_names, where)
    for what, column in others.items():
        if column not in table.column_names:
            raise DataError(
                f"{where} has no column {column!r}, but dmatrix_params[{dataset!r}] names it as the {what}. "
                f"Its columns are {_listed(table.column_names)}"
            )
    columns: dict[str, np.ndarray] = {}
    if "qid" in others:
        table, columns["qid"] = _by_query(table, others["qid"], f"the qid {others['qid']!r} of {where}", rank)
    unused = {label, *others.values(), *left_out}
    features = table.select([name for name in table.column_names if name not in unused])
    if like is not None:
        if missing := [name for name in like if name not in features.column_names]:
            raise DataError(
                f"{where} lacks {_listed(missing)}, which 'train' has. Add what is missing, or drop it from 'train'"
            )
        features = features.select(list(like))
    features = _with_floats(features)
    require_names(features.column_names, not_in_names, where)
    _require_features(features, where, categories)
    for what, column in others.items():
        if what != "qid":
            columns[what] = _numbers(table[column], f"the {what} {column!r} of {where}", rank)
    labels = _numbers(table[label], f"the label {label!r} of {where}", rank)
    return LabelledTable(dataset, features, labels, columns, waited_s)


def _by_query(table: pa.Table, column: str, what: str, rank: int) -> tuple[pa.Table, np.ndarray]:
    """The rows in the order of their queries, and the queries' numbers. Ids may be large numbers or text: they are never rounded."""
    import numpy as np

    _require_none_missing(table[column], what, rank)
    _, numbers = np.unique(table[column].to_numpy(), return_inverse=True)
    order = np.argsort(numbers, kind="stable")
    if not np.array_equal(order, np.arange(len(order))):
        table, numbers = table.take(order), numbers[order]
    return table, numbers.astype("uint32")


def _with_floats(features: pa.Table) -> pa.Table:
    """The features with float32 in place of float16, at which LightGBM aborts the process, and of columns whose values are all missing."""
    import pyarrow as pa

    for place, field in enumerate(features.schema):
        if field.type in (pa.float16(), pa.null()):
            features = features.set_column(place, field.name, features[field.name].cast(pa.float32()))
    return features


def _require_features(features: pa.Table, where: str, categories: bool) -> None:
    import pyarrow as pa

    if not features.num_columns:
        raise DataError(f"{where} has no columns besides the label. There is nothing to predict it from")
    for field in features.schema:
        kind = field.type
        is_category = categories and pa.types.is_dictionary(kind)
        # Where all values of a share are missing, its categories are none.
        if is_category and kind.value_type not in (pa.string(), pa.large_string(), pa.null()):
            raise DataError(
                f"the column {field.name!r} of {where} has categories of type {kind.value_type}. Categories have to be text: make it so, "
                "or use the numbers themselves"
            )
        if _has_arrays(kind):
            raise DataError(
                f"the column {field.name!r} of {where} has arrays. Trees need one number per column: leave the Concatenator out of the "
                "preprocessor, or make columns of the arrays"
            )
        if not (is_category or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"the column {field.name!r} of {where} has type {kind}. Trees need numbers: encode it, e.g. with the preprocessor "
                "OrdinalEncoder or OneHotEncoder, or drop it"
            )


def _has_arrays(kind: pa.DataType) -> bool:
    import pyarrow as pa

    stored = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind  # Ray's tensors are such
    return pa.types.is_list(stored) or pa.types.is_large_list(stored) or pa.types.is_fixed_size_list(stored)


def _numbers(column: pa.ChunkedArray, what: str, rank: int) -> np.ndarray:
    """A column as an array of floats that has a value in each row."""
    import pyarrow as pa

    _require_none_missing(column, what, rank)  # first: where all are missing, the type is none that numbers have
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(
            f"{what} has type {kind}. Trees need numbers: encode it, e.g. with the preprocessor LabelEncoder"
        )
    values: np.ndarray = column.cast(
        pa.float32() if not pa.types.is_boolean(kind) else pa.uint8(), safe=False
    ).to_numpy()
    return values.astype("float32", copy=False)


def _require_none_missing(column: pa.ChunkedArray, what: str, rank: int) -> None:
    from pyarrow import compute

    missing = compute.sum(compute.is_null(column, nan_is_null=True)).as_py() or 0
    if missing:
        raise DataError(
            f"{what} is missing in {missing} of the {len(column)} rows of rank {rank}. Fill them in, or drop those rows"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))[:500]
