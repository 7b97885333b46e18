"""Views of MLflow's table of runs: which runs it shows, in which order, with which columns.

MLflow keeps a view that somebody has shared in a tag of the experiment, and opens it for a link that names its key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from trainlib._registry import tags
from trainlib._registry.names import stored_name

__all__ = ["trials_view"]

# What MLflow's stores have accepted as a tag of an experiment for long. Newer ones take more.
_LONGEST = 5000


def trials_view(
    sweep_run_id: str, params: Sequence[str], *, metric: str | None, mode: Literal["max", "min"] | None
) -> dict[str, str]:
    """The tag of an experiment that shares the table of a sweep's trials: the best first, with what was searched.

    MLflow adds name, age, state and duration by itself. Params that have no room in the tag get no column.

    Args:
        sweep_run_id: The sweep's run, whose children are the trials. It is also the key of the view.
        params: The names of what is searched.
        metric: What is optimised, if anything is.
        mode: Whether a high or a low value of it is better.

    Example:
        >>> [(tag, value)] = trials_view("abc", ["lr"], metric="loss", mode="min").items()
        >>> tag
        'mlflow.sharedViewState.abc'
        >>> json.loads(value)["selectedColumns"]
        ['metrics.`loss`', 'params.`lr`']
    """
    columns = [_column("metrics", metric)] if metric is not None else []
    for param in params:
        columns.append(_column("params", param))
        if len(_state(sweep_run_id, columns, mode)) > _LONGEST:
            columns.pop()
            break
    return {tags.shared_view(sweep_run_id): _state(sweep_run_id, columns, mode)}


def _state(sweep_run_id: str, columns: list[str], mode: str | None) -> str:
    state: dict[str, Any] = {
        "searchFilter": tags.where(tags.MLFLOW_PARENT, sweep_run_id),
        "selectedColumns": columns,
        "runsHiddenMode": "SHOW_ALL",  # in its charts, MLflow would hide all but the first ten runs
    }
    if columns and columns[0].startswith("metrics."):
        state |= {"orderByKey": columns[0], "orderByAsc": mode == "min"}
    return json.dumps(state)


def _column(kind: str, name: str) -> str:
    return f"{kind}.`{stored_name(name)}`"
