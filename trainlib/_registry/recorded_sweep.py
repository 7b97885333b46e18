"""Reading a sweep: its trials, as earlier processes left them. Nothing is changed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib._lazy_rows import LazyRows, Row
from trainlib._registry import tags
from trainlib._registry.attempts import stopped_by
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.names import stored_name, trial_id
from trainlib._registry.recorded_run import RecordedRun, read_run
from trainlib._registry.retention import best
from trainlib._registry.trial_points import point_from
from trainlib.config import CheckpointConfig
from trainlib.result import Result

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_AT_ONCE = 1000


@dataclass(frozen=True)
class RecordedTrial:
    """A trial as an earlier process left it."""

    number: int
    run: Run
    point: str
    """Its point of the search space, as it was stored."""


class RecordedSweep:
    """Finds and reads the trials of a sweep, which are child runs of the sweep's run."""

    def __init__(self, client: MlflowClient, sweep: RecordedRun) -> None:
        self._client = client
        self._sweep = sweep

    def trials(self) -> list[RecordedTrial]:
        """All trials that MLflow knows of, by number. If two have one number, the newer one counts."""
        found = {
            int(run.data.tags[tags.TRIAL_NUMBER]): run for run in self._children() if tags.TRIAL_NUMBER in run.data.tags
        }
        return [RecordedTrial(number, run, point_from(run.data.tags)) for number, run in sorted(found.items())]

    def _children(self) -> Iterator[Run]:
        """The child runs, the oldest first."""
        token = None
        while True:
            page = self._client.search_runs(
                [self._sweep.place.experiment_id],
                tags.where(tags.MLFLOW_PARENT, self._sweep.run_id),
                max_results=_AT_ONCE,
                order_by=["attributes.start_time ASC"],
                page_token=token,
            )
            yield from page
            token = page.token
            if not token:
                return

    def result_of(
        self, trial: RecordedTrial, *, metric: str | None, config: CheckpointConfig, shown: dict[str, Any]
    ) -> Result:
        """What a trial has given so far.

        Args:
            trial: The trial.
            metric: The metric of the sweep. In the result it has the name that it was reported with.
            config: Which of the trial's checkpoints are the best.
            shown: The config of the trial, for its result.
        """
        run = read_run(self._client, trial.run, self._sweep.trials_place)
        saved = run.checkpoints.saved
        newest = max(saved, key=lambda checkpoint: checkpoint.index, default=None)
        history = RecordedRows(run, metric)
        (newest_row,) = deque(history, maxlen=1) or [{}]
        last = {
            **newest_row,
            "done": True,
            "config": shown,
            "trial_id": trial_id(self._sweep.run_id, trial.number),
            "experiment_id": run.run_id,
            "experiment_tag": str(trial.number),
        }
        return Result(
            metrics=last,
            checkpoint=as_checkpoint(newest) if newest else None,
            best_checkpoints=[(as_checkpoint(each), dict(each.metrics)) for each in best(saved, config)],
            log_dir=run.log_dir,
            run_id=run.run_id,
            run_url=run.url,
            attempts=len(run.attempts),
            stopped=stopped_by(run.attempts),
            history=history,
        )


class RecordedRows(LazyRows):
    """A row for each iteration of a trial. ``metric`` has the name that it was reported with, and not MLflow's."""

    def __init__(self, run: RecordedRun, metric: str | None) -> None:
        self._run = run
        self._renamed = {stored_name(metric): metric} if metric is not None else {}

    def __iter__(self) -> Iterator[Row]:
        run = self._run
        trained = {each.iteration: each.seconds for each in run.checkpoints.saved}
        seconds = seconds_trained(run.history.reported_at(), run.started, trained)
        for iteration, row in run.history.rows():
            yield {
                "training_iteration": iteration,
                **{self._renamed.get(name, name): value for name, value in row.items()},
                "time_total_s": seconds[iteration],
            }


def seconds_trained(clock: Mapping[int, float], started: float, saved: Mapping[int, float]) -> dict[int, float]:
    """How long a training had taken by each iteration, without the time in which nobody worked on it.

    Args:
        clock: When each iteration was reported.
        started: When the training began.
        saved: What is known: how long it had taken by the iterations that have a checkpoint.

    Example:
        >>> seconds_trained({1: 110.0, 2: 120.0, 3: 500.0, 4: 510.0}, started=100.0, saved={3: 30.0})
        {1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0}
        >>> seconds_trained({1: 3610.0, 2: 20.0, 3: 30.0}, started=3600.0, saved={})
        {1: 10.0, 2: 10.0, 3: 10.0}
    """
    trained: dict[int, float] = {}
    since, by_then, longest = started, 0.0, 0.0
    for step in sorted(clock):
        if step in saved:
            since, by_then = clock[step], saved[step]
        later = min((seconds for one, seconds in saved.items() if one > step), default=math.inf)
        # A clock may be set back: the training has not become shorter by that.
        trained[step] = longest = min(max(by_then + clock[step] - since, longest), later)
    return trained
