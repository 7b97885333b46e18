"""A worker's rows as one Arrow table: what a library of boosted trees makes its matrix of, without copying rows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.arguments import require_column
from trainlib.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["LabelledTable", "read_table"]


@dataclass(frozen=True)
class LabelledTable:
    """One worker's share of a dataset."""

    name: str
    """The dataset's."""
    features: pa.Table
    labels: np.ndarray
    columns: dict[str, np.ndarray]
    """Other columns that are no features, such as weights, by what they are for."""
    waited_s: float = 0.0
    """Seconds until the first rows came, in which Ray starts to read."""

    @property
    def rows(self) -> int:
        return int(self.features.num_rows)


def read_table(dataset: str, label: str, others: Mapping[str, str], *, categories: bool = True) -> LabelledTable:
    """Read this worker's share of a dataset.

    Args:
        dataset: Its name.
        label: The column with the labels.
        others: Columns that are no features either, by what they are for, e.g. ``{"weight": "w"}``.
        categories: Whether features may be categories, which Arrow calls dictionaries.

    Raises:
        DataError: a column is missing or cannot be used, or a label is missing.
    """
    import pyarrow as pa

    shard = session.get_dataset_shard(dataset)
    assert shard is not None, "the trainer has this dataset"
    batches: Any = iter(shard.iter_batches(batch_size=None, batch_format="pyarrow"))  # type: ignore[arg-type]
    begun = time.perf_counter()
    blocks = list(itertools.islice(batches, 1))
    waited = time.perf_counter() - begun
    blocks = [block for block in itertools.chain(blocks, batches) if block.num_rows]
    rank = session.get_world_rank()
    if not blocks:
        raise DataError(f"the dataset {dataset!r} has no rows for rank {rank}: use fewer workers, or more data")
    # Blocks of one dataset may differ in the width of a type, e.g. where one has missing values.
    table = pa.concat_tables(blocks, promote_options="permissive")
    where = f"the dataset {dataset!r}"
    require_column(label, table.column_names, where)
    for what, column in others.items():
        if column not in table.column_names:
            raise DataError(f"{where} has no column {column!r}, which dmatrix_params names as its {what}")
    features = table.drop_columns(list({label, *others.values()}))
    _require_features(features, where, categories)
    return LabelledTable(
        dataset,
        features,
        _numbers(table[label], f"the label {label!r} of {where}", rank),
        {what: _numbers(table[column], f"the {what} {column!r} of {where}", rank) for what, column in others.items()},
        waited,
    )


def _require_features(features: pa.Table, where: str, categories: bool) -> None:
    import pyarrow as pa

    if not features.num_columns:
        raise DataError(f"{where} has no columns besides the label. There is nothing to predict it from")
    for field in features.schema:
        kind = field.type
        is_category = categories and pa.types.is_dictionary(kind)
        if not (is_category or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"the column {field.name!r} of {where} is {kind}, which is no number. Encode it, e.g. with the preprocessor "
                "OrdinalEncoder or OneHotEncoder, or drop it"
            )


def _numbers(column: pa.ChunkedArray, what: str, rank: int) -> np.ndarray:
    """A column as an array of floats that has a value in each row."""
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise DataError(f"{what} is {kind}, which is no number. Encode it, e.g. with the preprocessor LabelEncoder")
    missing = compute.sum(compute.is_null(column, nan_is_null=True)).as_py() or 0
    if missing:
        raise DataError(
            f"{what} is missing in {missing} of the {len(column)} rows of rank {rank}. Fill them in, or drop those rows"
        )
    values: np.ndarray = column.cast(
        pa.float32() if not pa.types.is_boolean(kind) else pa.uint8(), safe=False
    ).to_numpy()
    return values.astype("float32", copy=False)
