"""The result of a training."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trainlib.checkpoint import Checkpoint
from trainlib.errors import TrainingFailedError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Result", "StopReason", "Stopped"]


class StopReason(StrEnum):
    """Which limit of ``RunConfig`` has ended a training.

    Example:
        >>> StopReason.NAN.is_divergence, StopReason.TIME_LIMIT.is_divergence
        (True, False)
    """

    TIME_LIMIT = "time limit"
    """It took longer than ``max_time_s``."""
    NAN = "nan"
    """A metric was NaN, and ``stop_on_nan`` is set."""
    DIVERGED = "diverged"
    """A metric was beyond the limit of ``divergence``."""

    @property
    def is_divergence(self) -> bool:
        """Whether the training went wrong. In a sweep, such a trial is never the best."""
        return self is not StopReason.TIME_LIMIT


@dataclass(frozen=True)
class Stopped:
    """That a limit has ended a training, and how.

    Example:
        >>> print(Stopped(StopReason.NAN, "loss is NaN at iteration 4"))
        loss is NaN at iteration 4
    """

    reason: StopReason
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass
class Result:
    """The outcome of ``Trainer.fit()``.

    Example:
        >>> Result(metrics={"loss": 0.1}).metrics["loss"]
        0.1
    """

    metrics: dict[str, Any] | None = None
    """The last reported metrics as they were reported, and those that trainlib adds."""
    checkpoint: Checkpoint | None = None
    """The last saved checkpoint."""
    error: BaseException | None = None
    """The error, if the training failed."""
    log_dir: Path | None = None
    """The training's local directory, also if its checkpoints are elsewhere. It has ``result.json`` and ``progress.csv`` with
    all results, ``params.json``, what each rank printed in ``rank_0.log`` and so on, and ``checkpoints``."""
    best_checkpoints: list[tuple[Checkpoint, dict[str, Any]]] = field(default_factory=list)
    """The N best saved checkpoints with their metrics, as CheckpointConfig asks for. The best is last."""
    run_id: str | None = None
    """The MLflow run, the same through all attempts."""
    run_url: str | None = None
    """The page of that run in the MLflow UI."""
    flow_run_id: str | None = None
    """The Prefect flow run."""
    flow_run_url: str | None = None
    """The page of that flow run in the Prefect UI."""
    attempts: int = 1
    """How many attempts it took."""
    resumed_at: list[int] = field(default_factory=list, repr=False)
    """After which iteration each attempt but the first one went on, as far as this process has seen them."""
    stopped: Stopped | None = None
    """Which limit of RunConfig has ended it: its time, NaN or divergence. None if none has."""
    returned: list[Any] = field(default_factory=list, repr=False)
    """What the training function returned, by rank."""
    rows: dict[str, list[list[int]]] = field(default_factory=dict, repr=False)
    """For each dataset, one entry per epoch: how many rows each rank read."""
    history: Sequence[dict[str, Any]] = field(default_factory=list, repr=False)
    """The metrics of each iteration, nested ones by joined names. Those of a long training are read from its local directory
    when they are asked for."""

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], *, trust: bool = False) -> Result:
        """The result of an earlier training, from its local directory. No server is needed.

        Args:
            path: The ``log_dir`` of its result.
            trust: Whether code in it may run. Its error and its checkpoints are pickles, which can contain any code. They are
                loaded only from files of your own, or with this. Otherwise the error is a TrainingFailedError with its text.

        Raises:
            RunNotFoundError: it is no directory of a training.

        Example::

            result = Result.from_path("~/trainlib/runs/digits_0b1c2d3e")
        """
        from trainlib._training.stored_result import result_at

        return result_at(path, trust=trust)

    @property
    def path(self) -> str | None:
        """The training's local directory, as newer guides spell ``log_dir``."""
        return str(self.log_dir) if self.log_dir is not None else None

    @property
    def config(self) -> dict[str, Any]:
        """The ``train_loop_config``."""
        return dict((self.metrics or {}).get("config", {}))

    @property
    def metrics_dataframe(self) -> pd.DataFrame:
        """The metrics of all iterations, one row each, with all that trainlib adds. Nested names are joined: ``val/acc``."""
        import pandas as pd

        from trainlib._autofilled import columns_of

        return pd.DataFrame(columns_of(self.history, self.metrics or {}))

    def plot(self, metric: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw how a metric went, with further attempts marked. A notebook shows it.

        Args:
            metric: which one. Default: the first one that was reported.
            ax: where to draw. Default: a new figure.

        Raises:
            ValueError: no finite value of it was reported.
            ImportError: matplotlib is not installed.

        Example:
            >>> rows = [{"training_iteration": 1, "loss": 2.0}, {"training_iteration": 2, "loss": 1.0}]
            >>> Result(history=rows).plot("loss").get_ylabel()
            'loss'
        """
        from trainlib._drawing.plots import plot_result

        return plot_result(self, metric, ax)

    def __getstate__(self) -> dict[str, Any]:
        """For pickling: many exceptions of users pickle, but do not unpickle by themselves."""
        from trainlib._execution.carried_errors import portable

        if self.error is None or isinstance(
            self.error, TrainingFailedError
        ):  # which does, and leads back to the result
            return dict(self.__dict__)
        return {**self.__dict__, "error": portable(self.error)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from trainlib._execution.carried_errors import revived

        error = state.get("error")
        self.__dict__.update({**state, "error": revived(error) if isinstance(error, bytes) else error})

    def _without_lost_checkpoint(self) -> Result:
        """This result; a copy without its checkpoint, if that was in the memory of a Ray that has ended."""
        return replace(self, checkpoint=None) if self.checkpoint is not None and self.checkpoint._is_lost else self

    def _repr_html_(self) -> str:
        from trainlib._drawing.html import html_of_result

        return html_of_result(self)

    def get_best_checkpoint(self, metric: str, mode: Literal["max", "min"]) -> Checkpoint | None:
        """The best of the kept checkpoints, by a metric that was reported with it."""
        if mode not in ("max", "min"):
            raise ValueError(f"mode is {mode!r}: use 'max' or 'min'")
        scored = [(metrics[metric], checkpoint) for checkpoint, metrics in self.best_checkpoints if metric in metrics]
        if not scored:
            return None
        return (max if mode == "max" else min)(scored, key=lambda pair: pair[0])[1]
