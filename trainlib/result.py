"""The result of a training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trainlib.checkpoint import Checkpoint

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Result"]


@dataclass
class Result:
    """The outcome of ``Trainer.fit()``.

    Example:
        >>> Result(metrics={"loss": 0.1}).metrics["loss"]
        0.1
    """

    metrics: dict[str, Any] | None = None
    """The last reported metrics, and those that trainlib adds."""
    checkpoint: Checkpoint | None = None
    """The last saved checkpoint."""
    error: BaseException | None = None
    """The error, if the training failed."""
    log_dir: str | None = None
    """The training's local directory."""
    best_checkpoints: list[tuple[Checkpoint, dict[str, Any]]] = field(default_factory=list)
    """The N best saved checkpoints with their metrics, as CheckpointConfig asks for. The best is last."""
    run_id: str | None = None
    """The MLflow run, the same through all attempts."""
    run_url: str | None = None
    """The page of that run in the MLflow UI."""
    flow_run_id: str | None = None
    """The Prefect flow run."""
    attempts: int = 1
    """How many attempts it took."""
    returned: list[Any] = field(default_factory=list, repr=False)
    """What the training function returned, by rank."""
    rows: dict[str, list[list[int]]] = field(default_factory=dict, repr=False)
    """For each dataset, one entry per epoch: how many rows each rank read."""
    history: Sequence[dict[str, Any]] = field(default_factory=list, repr=False)
    """The metrics of each iteration. Those of a long training are read from its local directory when they are asked for."""

    @property
    def path(self) -> str | None:
        """The training's local directory, as newer guides spell ``log_dir``."""
        return self.log_dir

    @property
    def config(self) -> dict[str, Any]:
        """The ``train_loop_config``."""
        return dict((self.metrics or {}).get("config", {}))

    @property
    def metrics_dataframe(self) -> pd.DataFrame:
        """The metrics of all iterations, one row each."""
        import pandas as pd

        return pd.DataFrame(_columns(self.history))

    def get_best_checkpoint(self, metric: str, mode: Literal["max", "min"]) -> Checkpoint | None:
        """The best of the kept checkpoints, by a metric that was reported with it."""
        if mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
        scored = [(metrics[metric], checkpoint) for checkpoint, metrics in self.best_checkpoints if metric in metrics]
        if not scored:
            return None
        return (max if mode == "max" else min)(scored, key=lambda pair: pair[0])[1]


def _columns(rows: Iterable[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, without holding all rows at once. What a row lacks is NaN.

    Example:
        >>> _columns([{"loss": 0.5}, {"loss": 0.25, "accuracy": 1}])
        {'loss': [0.5, 0.25], 'accuracy': [nan, 1]}
    """
    columns: dict[str, list[Any]] = {}
    count = 0
    for row in rows:
        for name, value in row.items():
            column = columns.setdefault(name, [])
            column += [math.nan] * (count - len(column))
            column.append(value)
        count += 1
    for column in columns.values():
        column += [math.nan] * (count - len(column))
    return columns
