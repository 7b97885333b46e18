"""Rows for training and rows for validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlib._data.spec import SplitSpec
from trainlib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data


def split_column(spec: SplitSpec, target: str | None) -> str | None:
    """The column that decides, if one does."""
    return spec.column or (target if spec.by == "stratify" else None)


def require_split(spec: SplitSpec, target: str | None, schema: pa.Schema, where: str) -> None:
    """Raise an error for a split that the columns do not allow."""
    import pyarrow as pa

    column = split_column(spec, target)
    if column is None:
        if spec.by == "stratify":
            raise DataError("splitting by stratify needs a column: name one, or the target")
        return
    kind = schema.field(column).type
    in_order = pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if spec.by == "time" and not in_order:
        raise DataError(
            f"column {column!r} of {where} is of type {kind}, whose order is not that of time: write times like "
            "2026-11-16, or as numbers"
        )


def split(dataset: ray.data.Dataset, spec: SplitSpec, target: str | None) -> tuple[ray.data.Dataset, ray.data.Dataset]:
    """Train and validation."""
    column = split_column(spec, target)
    match spec.by:
        case "shuffle":
            return dataset.train_test_split(spec.size, shuffle=True, seed=spec.seed)
        case "stratify":  # of each class, the last rows are taken
            return dataset.random_shuffle(seed=spec.seed).train_test_split(spec.size, stratify=column)
        case "time":
            return dataset.sort(column).train_test_split(spec.size)  # type: ignore[arg-type]
        case "hash":
            return dataset.streaming_train_test_split(spec.size, split_type="hash", hash_column=column)
