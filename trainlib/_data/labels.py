"""Checks labels: a model cannot learn from labels that are missing or all the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data


@dataclass(frozen=True)
class LabelCounts:
    """Counts over the labels of some rows."""

    rows: int = 0
    missing: int = 0
    first_missing: int | None = None
    """The number of the row, from 1."""
    example: str | None = None
    """One of the values."""
    vary: bool = False
    """Whether there are several values."""

    def plus(self, other: LabelCounts) -> LabelCounts:
        """The counts of these rows and of the rows after them.

        Example:
            >>> LabelCounts(rows=2, example="1").plus(LabelCounts(rows=3, missing=1, first_missing=2, example="1"))
            LabelCounts(rows=5, missing=1, first_missing=4, example='1', vary=False)
        """
        later = other.first_missing + self.rows if other.first_missing is not None else None
        differ = self.example is not None and other.example is not None and self.example != other.example
        return LabelCounts(
            self.rows + other.rows,
            self.missing + other.missing,
            self.first_missing if self.first_missing is not None else later,
            self.example if self.example is not None else other.example,
            self.vary or other.vary or differ,
        )


def _count_labels(dataset: ray.data.Dataset, target: str) -> LabelCounts:
    counts = dataset.select_columns([target]).map_batches(
        _count_batch,  # type: ignore[arg-type]
        batch_format="pyarrow",
        batch_size=None,
        fn_kwargs={"target": target},
    )
    labels = LabelCounts()
    for row in counts.iter_rows():
        labels = labels.plus(LabelCounts(**row))
    return labels


def _require_none_missing(labels: LabelCounts, column: str, what: str, source: str) -> None:
    if labels.missing:
        raise DataError(
            f"{labels.missing} of {labels.rows} rows of {source} have no {what} in column {column!r}; the first is row "
            f"{labels.first_missing}. Fill them in, or drop those rows"
        )


def require_complete(dataset: ray.data.Dataset, column: str, source: str) -> None:
    """Raise a DataError if a column has missing values."""
    _require_none_missing(_count_labels(dataset, column), column, "value", source)


def require_labels(dataset: ray.data.Dataset, target: str, source: str) -> int:
    """Raise a DataError if labels are missing or all the same. Returns the number of rows."""
    labels = _count_labels(dataset, target)
    _require_none_missing(labels, target, "label", source)
    if not labels.vary:
        raise DataError(
            f"column {target!r} of {source} is {labels.example} in all {labels.rows} rows. A model learns nothing from a label "
            "that never changes: choose another target"
        )
    return labels.rows


def _count_batch(batch: pa.Table, target: str) -> dict[str, list[Any]]:
    import pyarrow as pa
    from pyarrow import compute

    column = batch.column(target)
    is_missing = compute.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    missing = compute.sum(is_missing).as_py() or 0
    present = column.filter(compute.invert(is_missing))
    one = present[0] if len(present) else None
    return {
        "rows": [len(column)],
        "missing": [missing],
        "first_missing": [compute.index(is_missing, True).as_py() + 1 if missing else None],
        "example": [str(one.as_py()) if one is not None else None],
        "vary": [one is not None and not compute.all(compute.equal(present, one)).as_py()],
    }
