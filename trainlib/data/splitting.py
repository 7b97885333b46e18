"""Rows for training and rows for validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlib.data.spec import SplitSpec
from trainlib.errors import DataError

if TYPE_CHECKING:
    import ray.data


def split_column(spec: SplitSpec, target: str | None) -> str | None:
    """The column that decides, if one does."""
    return spec.column or (target if spec.by == "stratify" else None)


def split(dataset: ray.data.Dataset, spec: SplitSpec, target: str | None) -> tuple[ray.data.Dataset, ray.data.Dataset]:
    """Train and validation."""
    column = split_column(spec, target)
    match spec.by:
        case "shuffle":
            return dataset.train_test_split(spec.size, shuffle=True, seed=spec.seed)
        case "stratify":
            if column is None:
                raise DataError("splitting by stratify needs a column: name one, or the target")
            return dataset.train_test_split(spec.size, stratify=column)
        case "time":
            return dataset.sort(column).train_test_split(spec.size)  # type: ignore[arg-type]
        case "hash":
            return dataset.streaming_train_test_split(spec.size, split_type="hash", hash_column=column)
