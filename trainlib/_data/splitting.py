"""Splits rows into training and validation, and holds some out for a test."""

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


def split(dataset: ray.data.Dataset, spec: SplitSpec, target: str | None) -> dict[str, ray.data.Dataset]:
    """The parts ``train`` and ``validation``, and ``test`` if rows are held out."""
    column = split_column(spec, target)
    dataset = _in_order(dataset, spec, column)
    if not spec.test_size:
        train, validation = _cut(dataset, spec, spec.size, column)
        return {"train": train, "validation": validation}
    rest, test = _cut(dataset, spec, spec.test_size, column)
    train, validation = _cut(rest, spec, _share_of_rest(spec), column)
    return {"train": train, "validation": validation, "test": test}


def _in_order(dataset: ray.data.Dataset, spec: SplitSpec, column: str | None) -> ray.data.Dataset:
    """The rows in such an order that the last ones can be cut off."""
    match spec.by:
        case "shuffle" | "stratify":  # by classes, too: the last rows of each class are cut off
            return dataset.random_shuffle(seed=spec.seed)
        case "time":
            return dataset.sort(column)  # type: ignore[arg-type]
        case "hash":
            return dataset


def _cut(
    dataset: ray.data.Dataset, spec: SplitSpec, size: float, column: str | None
) -> tuple[ray.data.Dataset, ray.data.Dataset]:
    """All but a share of the rows, and that share."""
    match spec.by:
        case "shuffle" | "time":
            return dataset.train_test_split(size)
        case "stratify":
            return dataset.train_test_split(size, stratify=column)
        case "hash":
            return dataset.streaming_train_test_split(size, split_type="hash", hash_column=column)


def _share_of_rest(spec: SplitSpec) -> float:
    """What is for validation, as a share of the rows that are left when those for the test are cut off.

    By hash, the keys with the highest hashes are cut off. So those for validation are the next ones below.
    """
    return spec.size + spec.test_size if spec.by == "hash" else spec.size / (1.0 - spec.test_size)
