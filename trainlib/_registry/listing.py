"""Lists of what the registry has: runs, and checkpoints. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

from trainlib._registry import statuses, tags
from trainlib._registry.attempts import AttemptRecord, recorded_attempts
from trainlib._registry.logged_models import as_saved, is_ready
from trainlib._registry.metrics import is_about_data
from trainlib._registry.ownership import Occupancy, occupancy
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.urls import run_url, trials_url
from trainlib.errors import RunNotFoundError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

__all__ = [
    "CheckpointSummary",
    "RunDetails",
    "RunState",
    "RunSummary",
    "describe_run",
    "experiments_named",
    "list_checkpoints",
    "list_runs",
]

_PAGE = 100


class RunState(StrEnum):
    """How a run is."""

    RUNNING = "running"
    """A process works on it."""
    FINISHED = "finished"
    """It has come to its end."""
    FAILED = "failed"
    """It has failed, and no retries were left."""
    KILLED = "killed"
    """Somebody has ended it: with Ctrl-C, SIGTERM, or Cancel in Prefect."""
    SUSPENDED = "suspended"
    """Somebody has suspended its flow run in Prefect. It goes on when that is resumed."""
    LOST = "lost"
    """Its process ended without a word, for example because it was killed, or the machine was switched off."""

    @classmethod
    def of(cls, run: Run) -> RunState:
        """The state of a run, as far as can be told at once."""
        if occupancy(run) is Occupancy.GONE:
            return cls.LOST
        words = {
            "FINISHED": cls.FINISHED,
            "FAILED": cls.FAILED,
            "KILLED": cls.KILLED,
            statuses.SUSPENDED: cls.SUSPENDED,
        }
        return words.get(run.info.status, cls.RUNNING)


@dataclass(frozen=True)
class RunSummary:
    """A training, a trial or a sweep on one line."""

    id: str
    name: str
    kind: str
    """``training``, ``sweep`` or ``trial``."""
    experiment: str
    status: RunState
    started: datetime
    ended: datetime | None
    """None if it has not ended."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last value of each metric that was reported."""

    @property
    def seconds(self) -> float:
        """How long it has taken so far, from its beginning to its end."""
        return ((self.ended or datetime.now(UTC)) - self.started).total_seconds()


@dataclass(frozen=True)
class CheckpointSummary:
    """A checkpoint on one line."""

    id: str
    """Of its logged model in MLflow."""
    run_id: str
    iteration: int
    score: float | None
    """What it is ranked by, if ``CheckpointConfig`` says so."""
    metrics: Mapping[str, Any]
    """What was reported with it."""
    saved: datetime
    location: str


@dataclass(frozen=True)
class RunDetails:
    """Everything that a person wants to know about a run."""

    summary: RunSummary
    framework: str | None
    settings: Mapping[str, str]
    """Its config, flat and without secrets, and the trainer, the number of workers and whether they have GPUs."""
    attempts: tuple[AttemptRecord, ...]
    checkpoints: tuple[CheckpointSummary, ...]
    trials: tuple[RunSummary, ...]
    """Of a sweep."""
    forked_from: str | None
    """The checkpoint that it was started from by ``trainlib fork``."""
    links: Mapping[str, str]
    """Its pages in the UIs, and where its artifacts are."""


def list_runs(
    client: MlflowClient,
    *,
    experiment: str | None = None,
    status: RunState | None = None,
    limit: int | None = None,
    with_trials: bool = False,
) -> list[RunSummary]:
    """The trainings and sweeps in the registry, newest first. Runs of others are left out.

    Args:
        client: A client of the store.
        experiment: Only those of the experiment of this name.
        status: Only those in this state.
        limit: So many at most.
        with_trials: Whether the trials of sweeps are listed too.

    Raises:
        RunNotFoundError: there is no experiment of that name.
    """
    experiments = experiments_named(client, experiment)
    where = [] if with_trials else [f"tags.`{tags.KIND}` LIKE '%'"]
    if status is not None:
        word = {RunState.LOST: "RUNNING", RunState.SUSPENDED: statuses.SUSPENDED}.get(status, status.name)
        # A run that was continued, and lost then, still has the status of the first time.
        where += [] if status is RunState.LOST else [f"attributes.status = '{word}'"]
    found = (
        _summary(run, experiments)
        for run in _runs(client, list(experiments), " AND ".join(where))
        if tags.KIND in run.data.tags or tags.TRIAL_NUMBER in run.data.tags
    )
    return list(islice((run for run in found if status in (None, run.status)), limit))


def describe_run(client: MlflowClient, run: Run) -> RunDetails:
    """Everything that MLflow has of a run."""
    info, known = run.info, run.data.tags
    experiments = {info.experiment_id: client.get_experiment(info.experiment_id).name}
    trials = _runs(client, [info.experiment_id], tags.where(tags.MLFLOW_PARENT, info.run_id))
    place = client.tracking_uri, info.experiment_id, info.run_id
    links = {
        "mlflow": run_url(*place),
        "trials": trials_url(*place) if known.get(tags.KIND) == "sweep" else None,
        "prefect": known.get(tags.FLOW_RUN_URL),
        "artifacts": info.artifact_uri,
    }
    return RunDetails(
        summary=_summary(run, experiments),
        framework=known.get(tags.FRAMEWORK),
        settings={name: value for name, value in sorted(run.data.params.items()) if not tags.is_internal(name)},
        attempts=tuple(recorded_attempts(known)),
        checkpoints=tuple(list_checkpoints(client, run=run)),
        trials=tuple(_summary(trial, experiments) for trial in trials),
        forked_from=known.get(tags.FORKED_FROM),
        links={name: link for name, link in links.items() if link},
    )


def list_checkpoints(
    client: MlflowClient, *, run: Run | None = None, limit: int | None = None
) -> list[CheckpointSummary]:
    """The complete checkpoints of a run, or of all runs, newest first."""
    if run is not None:
        experiments, of_run = [run.info.experiment_id], f"source_run_id = '{run.info.run_id}'"
    else:
        experiments, of_run = list(experiments_named(client, None)), None
    return list(islice(_checkpoints(client, experiments, of_run), limit))


def experiments_named(client: MlflowClient, name: str | None) -> dict[str, str]:
    """The names of all experiments, or of the one of that name, by their ids.

    Raises:
        RunNotFoundError: there is no experiment of that name.
    """
    found = {each.experiment_id: each.name for each in client.search_experiments()}
    if name is None:
        return found
    named = {key: each for key, each in found.items() if each == name}
    if not named:
        raise RunNotFoundError(f"there is no experiment {name!r}; there are: {', '.join(sorted(found.values()))}")
    return named


def _runs(client: MlflowClient, experiments: list[str], where: str) -> Iterator[Run]:
    token = None
    while True:
        page = client.search_runs(
            experiments, where, max_results=_PAGE, order_by=["attributes.start_time DESC"], page_token=token
        )
        yield from page
        if not (token := page.token):
            return


def _checkpoints(client: MlflowClient, experiments: list[str], where: str | None) -> Iterator[CheckpointSummary]:
    newest_first = [{"field_name": "creation_timestamp", "ascending": False}]
    token = None
    while True:
        page = client.search_logged_models(
            experiments, filter_string=where, max_results=_PAGE, order_by=newest_first, page_token=token
        )
        for model in page:
            if tags.CHECKPOINT_INDEX in model.tags and is_ready(model):
                saved = as_saved(model, client.tracking_uri)
                yield _of_checkpoint(saved, str(model.source_run_id), model.creation_timestamp)
        if not (token := page.token):
            return


def _of_checkpoint(saved: SavedCheckpoint, run_id: str, created_ms: int) -> CheckpointSummary:
    return CheckpointSummary(
        saved.model_id, run_id, saved.iteration, saved.score, saved.metrics, _moment(created_ms), saved.location
    )


def _summary(run: Run, experiments: Mapping[str, str]) -> RunSummary:
    info, known = run.info, run.data.tags
    return RunSummary(
        id=info.run_id,
        name=info.run_name,
        kind=known.get(tags.KIND, "trial"),
        experiment=experiments[info.experiment_id],
        status=RunState.of(run),
        started=_moment(info.start_time),
        ended=_moment(info.end_time) if info.end_time else None,
        metrics={name: value for name, value in sorted(run.data.metrics.items()) if not is_about_data(name)},
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
