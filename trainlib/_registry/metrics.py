"""The metrics that trainlib records by itself: what was read of the data."""

from __future__ import annotations

_ABOUT_DATA = "data/"
# Up to so many workers have a chart each. For more, there are the least and the most rows of any worker.
_RANKS_SHOWN = 8


def is_about_data(name: str) -> bool:
    """Whether trainlib itself recorded a metric, to say what was read. The training function did not report it."""
    return name.startswith(_ABOUT_DATA)


def rows_read(dataset: str, rows: list[int], *, is_split: bool) -> dict[str, float]:
    """The metrics of an epoch of a dataset; ``rows`` has the number of rows that each rank read.

    Example:
        >>> rows_read("train", [50, 49], is_split=True)
        {'data/train/rows': 99, 'data/train/rows_rank_0': 50, 'data/train/rows_rank_1': 49}
        >>> rows_read("validation", [10, 10], is_split=False)
        {'data/validation/rows': 10}
    """
    name = f"{_ABOUT_DATA}{dataset}/rows"
    if not is_split:
        return {name: max(rows)}
    if len(rows) > _RANKS_SHOWN:
        return {name: sum(rows), f"{name}_least": min(rows), f"{name}_most": max(rows)}
    return {name: sum(rows), **{f"{name}_rank_{rank}": each for rank, each in enumerate(rows)}}
