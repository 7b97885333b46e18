"""A sweep in the registry: a parent run, and one child run a trial."""

from __future__ import annotations

import base64
import math
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.checkpoints import as_checkpoint, as_saved, models_of_run
from trainlib._registry.metrics import is_about_data, stored_name
from trainlib._registry.provenance import Driver, source_tags
from trainlib._registry.retention import SavedCheckpoint, best
from trainlib._registry.run import RegisteredRun
from trainlib.config import RunConfig
from trainlib.result import Result

if TYPE_CHECKING:
    from mlflow.entities import Run

__all__ = ["RecordedTrial", "TrialRegistry"]

NUMBER, POINT = "trainlib.trial", "trainlib.trial.point"
_PARENT = "mlflow.parentRunId"
# MLflow takes tags of 8000 characters.
_PIECE = 7000


@dataclass(frozen=True)
class RecordedTrial:
    """A trial as an earlier process left it."""

    number: int
    run: Run
    point: Any


class TrialRegistry:
    """Makes, finds and reads the child runs of a sweep."""

    def __init__(self, parent: RegisteredRun, *, tags: Mapping[str, str]) -> None:
        self._parent = parent
        self._tags = {**source_tags(), _PARENT: parent.run_id, **tags}

    def create(self, number: int, name: str, point: Any, config: RunConfig, tags: Mapping[str, str]) -> RegisteredRun:
        """A new child run. All that another process has to know of the trial comes to be with it."""
        parent = self._parent
        every = {
            **self._tags,
            **tags,
            "trainlib.driver": str(Driver.this()),
            NUMBER: str(number),
            **point_tags(point),
        }
        run = parent.client.create_run(
            parent.experiment_id, start_time=int(time.time() * 1000), tags=every, run_name=name
        )
        return RegisteredRun(parent.client, run, config, uri=parent.tracking_uri, continued=False, parent=parent)

    def go_on(self, recorded: RecordedTrial, config: RunConfig) -> RegisteredRun:
        """The child run of a trial that an earlier process began."""
        parent, run = self._parent, recorded.run
        parent.client.update_run(run.info.run_id, status="RUNNING")
        parent.client.set_tag(run.info.run_id, "trainlib.driver", str(Driver.this()))
        registered = RegisteredRun(parent.client, run, config, uri=parent.tracking_uri, continued=True, parent=parent)
        if run.info.status == "RUNNING":
            lost = AttemptRecord(
                len(registered.attempts) + 1, Outcome.LOST, None, message="the process of the sweep ended"
            )
            registered.record(lost)
        return registered

    def recorded(self) -> list[RecordedTrial]:
        """All trials that there are, by number."""
        parent = self._parent
        found: dict[int, RecordedTrial] = {}
        token = None
        while True:
            page = parent.client.search_runs(
                [parent.experiment_id],
                f"tags.`{_PARENT}` = '{parent.run_id}'",
                max_results=1000,
                order_by=["attributes.start_time ASC"],
                page_token=token,
            )
            for run in page:
                if NUMBER in run.data.tags:
                    tags = run.data.tags
                    number = int(tags[NUMBER])
                    found[number] = RecordedTrial(number, run, _point(tags))
            token = page.token
            if not token:
                return [found[number] for number in sorted(found)]

    def end(self, recorded: RecordedTrial, status: str) -> None:
        """End the run of a trial that does not go on."""
        self._parent.client.set_terminated(recorded.run.info.run_id, status)

    def result_of(
        self, recorded: RecordedTrial, metric: str | None, config: RunConfig, shown: dict[str, Any]
    ) -> Result:
        """What a trial of an earlier process has given, as far as the registry knows.

        The sweep's metric is told under the name that it was reported with.
        """
        from trainlib._registry.client import ui_url

        parent, run = self._parent, recorded.run
        models = models_of_run(parent.client, parent.experiment_id, run.info.run_id)
        saved = [found for model in models if (found := as_saved(model)) is not None]
        newest = max(saved, key=lambda one: one.index, default=None)
        history = self._history(run, metric, saved)
        attempts = [key for key in run.data.tags if key.startswith("trainlib.attempt.")]
        last = {**(history[-1] if history else {}), "done": True, "config": shown, "trial_id": run.info.run_id[:8]}
        return Result(
            metrics=last,
            checkpoint=as_checkpoint(newest) if newest else None,
            best_checkpoints=[(as_checkpoint(one), dict(one.metrics)) for one in best(saved, config.checkpoint_config)],
            log_dir=str(parent.log_dir / f"{run.info.run_name}_{run.info.run_id[:8]}"),
            run_id=run.info.run_id,
            run_url=ui_url(parent.tracking_uri, parent.experiment_id, run.info.run_id),
            attempts=len(attempts),
            history=history,
        )

    def _history(self, run: Run, metric: str | None, saved: list[SavedCheckpoint]) -> list[dict[str, Any]]:
        """A row for each iteration of a trial."""
        rows: dict[int, dict[str, Any]] = {}
        clock: dict[int, float] = {}
        for key in run.data.metrics:
            if is_about_data(key):
                continue
            name = metric if metric is not None and key == stored_name(metric) else key
            for point in self._parent.client.get_metric_history(run.info.run_id, key):
                rows.setdefault(point.step, {"training_iteration": point.step})[name] = point.value
                clock.setdefault(point.step, point.timestamp / 1000)
        trained = {one.iteration: one.seconds for one in saved}
        for step, seconds in seconds_trained(clock, run.info.start_time / 1000, trained).items():
            rows[step]["time_total_s"] = seconds
        return [rows[step] for step in sorted(rows)]


def seconds_trained(clock: Mapping[int, float], started: float, saved: Mapping[int, float]) -> dict[int, float]:
    """How long a training had taken by each iteration, without the time in which nobody worked on it.

    Args:
        clock: When each iteration was reported.
        started: When the training began.
        saved: What is known: how long it had taken by the iterations that have a checkpoint.

    Example:
        >>> seconds_trained({1: 110.0, 2: 120.0, 3: 500.0, 4: 510.0}, started=100.0, saved={3: 30.0})
        {1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0}
    """
    trained: dict[int, float] = {}
    since, by_then = started, 0.0
    for step in sorted(clock):
        if step in saved:
            since, by_then = clock[step], saved[step]
        later = min((seconds for one, seconds in saved.items() if one > step), default=math.inf)
        trained[step] = min(by_then + clock[step] - since, later)
    return trained


def point_tags(point: Any) -> dict[str, str]:
    """A trial's point of the search space, in as many tags as it takes."""
    text = base64.b64encode(zlib.compress(cloudpickle.dumps(point))).decode()
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    return {f"{POINT}.{index:03d}": piece for index, piece in enumerate(pieces)} | {f"{POINT}s": str(len(pieces))}


def _point(tags: Mapping[str, str]) -> Any:
    count = int(tags[f"{POINT}s"])
    text = "".join(tags[f"{POINT}.{index:03d}"] for index in range(count))
    return cloudpickle.loads(zlib.decompress(base64.b64decode(text)))
