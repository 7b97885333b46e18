"""A run as MLflow knows it, and how it is read: no folder is made, no thread is started, and the run stays as it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._registry import tags
from trainlib._registry.attempts import AttemptRecord, recorded_attempts
from trainlib._registry.logged_models import FoundCheckpoints, read_checkpoints
from trainlib._registry.metric_history import MetricHistory, read_history
from trainlib._registry.store import TrackingStore
from trainlib._registry.urls import run_url, trials_url
from trainlib.config import RunConfig

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Run

# What people would have to quote in a shell, or cannot have in the name of a folder.
_AWKWARD = re.compile(r"[\s/:·]+")


@dataclass(frozen=True)
class Place:
    """Where runs are kept: all those of an experiment, or the trials of a sweep."""

    store: TrackingStore
    experiment_id: str
    experiment_name: str
    artifact_root: str
    """Where the experiment keeps artifacts."""
    log_dirs: Path
    """The folder on this machine that has a folder for each run."""
    patience_s: float = 600.0
    """How long to wait for the store when it is away."""

    @classmethod
    def of_experiment(cls, experiment: Experiment, config: RunConfig, store: TrackingStore) -> Place:
        """The place of trainings and sweeps. Logs of those whose storage is remote are kept at home."""
        root = storage.local_path(config.storage_path) if config.storage_path else None
        return cls(
            store=store,
            experiment_id=experiment.experiment_id,
            experiment_name=experiment.name,
            artifact_root=experiment.artifact_location,
            log_dirs=root or storage.home() / "runs",
            patience_s=config.failure_config.mlflow_timeout_min * 60,
        )


@dataclass(frozen=True)
class RecordedRun:
    """A run as it was when it was read. All of it is facts: looking at them asks no server."""

    place: Place
    run_id: str
    name: str
    artifact_uri: str
    """Where its own artifacts are."""
    started: float
    """When it was created, in seconds since 1970."""
    status: str = "RUNNING"
    """MLflow's word for it: RUNNING, FINISHED, FAILED or KILLED."""
    flow_run_id: str | None = None
    """The Prefect flow run that worked on it last."""
    log_folder: str | None = None
    """The folder of its logs, below that of all runs, if it is not named after the run."""
    attempts: tuple[AttemptRecord, ...] = ()
    spent_s: float = 0.0
    """The seconds in which its workers have run, in all attempts."""
    checkpoints: FoundCheckpoints = field(default_factory=FoundCheckpoints)
    history: MetricHistory = field(default_factory=MetricHistory)

    @property
    def url(self) -> str:
        """Its page in the MLflow UI."""
        return run_url(self.place.store.uri, self.place.experiment_id, self.run_id)

    @property
    def trials_url(self) -> str:
        """The table of its trials in the MLflow UI, if it is the run of a sweep."""
        return trials_url(self.place.store.uri, self.place.experiment_id, self.run_id)

    @property
    def log_dir(self) -> Path:
        """Its local folder. On this machine it may not exist."""
        return self.place.log_dirs / (self.log_folder or f"{_AWKWARD.sub('_', self.name)}_{self.run_id[:8]}")

    @property
    def trials_place(self) -> Place:
        """Where the trials of this run are kept, if it is the run of a sweep."""
        return replace(self.place, log_dirs=self.log_dir)


def just_created(run: Run, place: Place) -> RecordedRun:
    """A run that has just been created. MLflow is not asked: it has nothing of the run yet."""
    return RecordedRun(
        place=place,
        run_id=run.info.run_id,
        name=run.info.run_name,
        artifact_uri=run.info.artifact_uri,
        started=run.info.start_time / 1000,
        status=run.info.status,
        log_folder=run.data.tags.get(tags.LOG_FOLDER),
    )


def read_run(client: MlflowClient, run: Run, place: Place) -> RecordedRun:
    """Read everything that MLflow has of a run."""
    return replace(
        just_created(run, place),
        flow_run_id=run.data.tags.get(tags.FLOW_RUN_ID),
        attempts=tuple(recorded_attempts(run.data.tags)),
        spent_s=float(run.data.tags.get(tags.SPENT, "0")),
        checkpoints=read_checkpoints(client, place.experiment_id, run.info.run_id),
        history=read_history(client, run),
    )
