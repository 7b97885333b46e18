"""Splits rows into training and validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlib._data.spec import SplitSpec
from trainlib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data


def split_column(spec: SplitSpec, target: str | None) -> str | None:
    """The column that the split goes by, if it needs one."""
    return spec.column or (target if spec.by == "stratify" else None)


def require_split(spec: SplitSpec, target: str | None, schema: pa.Schema, where: str) -> None:
    """Raise a DataError if the columns do not allow this split."""
    import pyarrow as pa

    column = split_column(spec, target)
    if column is None:
        if spec.by == "stratify":
            raise DataError("splitting by stratify needs a column. Set split.column, or target")
        return
    kind = schema.field(column).type
    in_order = pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if spec.by == "time" and not in_order:
        raise DataError(
            f"splitting by time needs times or numbers, but column {column!r} of {where} is of type {kind}. Write times like "
            "2026-11-16, or as numbers"
        )


def split(dataset: ray.data.Dataset, spec: SplitSpec, target: str | None) -> tuple[ray.data.Dataset, ray.data.Dataset]:
    """The rows for training, and those for validation."""
    column = split_column(spec, target)
    match spec.by:
        case "shuffle":
            return dataset.train_test_split(spec.size, shuffle=True, seed=spec.seed)
        case "stratify":  # train_test_split takes the last rows of each class, so shuffle first
            return dataset.random_shuffle(seed=spec.seed).train_test_split(spec.size, stratify=column)
        case "time":
            return dataset.sort(column).train_test_split(spec.size)  # type: ignore[arg-type]
        case "hash":
            return dataset.streaming_train_test_split(spec.size, split_type="hash", hash_column=column)
