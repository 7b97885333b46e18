"""The metrics that trainlib records by itself: what was read of the data.

MLflow shows metrics whose names begin with ``system/`` on a page of their own: a run's charts begin with what its
function reported.
"""

from __future__ import annotations

import re

_ABOUT_DATA = "system/data/"
# Without "system/", runs of earlier versions have them.
_ROWS = re.compile(r"(system/)?data/.+/rows(_rank_\d+|_least|_most)?")
# Up to so many workers have a chart each. For more, there are the least and the most rows of any worker.
_RANKS_SHOWN = 8


def is_about_data(name: str) -> bool:
    """Whether trainlib itself recorded a metric, to say what was read. The training function did not report it."""
    return _ROWS.fullmatch(name) is not None


def rows_read(dataset: str, rows: list[int], *, is_split: bool) -> dict[str, float]:
    """The metrics of an epoch of a dataset; ``rows`` has the number of rows that each rank read.

    Example:
        >>> rows_read("train", [50, 49], is_split=True)
        {'system/data/train/rows': 99, 'system/data/train/rows_rank_0': 50, 'system/data/train/rows_rank_1': 49}
        >>> rows_read("validation", [10, 10], is_split=False)
        {'system/data/validation/rows': 10}
    """
    name = f"{_ABOUT_DATA}{dataset}/rows"
    if not is_split:
        return {name: max(rows)}
    if len(rows) > _RANKS_SHOWN:
        return {name: sum(rows), f"{name}_least": min(rows), f"{name}_most": max(rows)}
    return {name: sum(rows), **{f"{name}_rank_{rank}": each for rank, each in enumerate(rows)}}
