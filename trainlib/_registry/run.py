"""Writing a run: one training, one MLflow run, begun or continued, described, recorded and ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._process import Process
from trainlib._registry import tags as names
from trainlib._registry.attempts import AttemptRecord, Outcome, attempt_tags, has_failed, recorded_attempts
from trainlib._registry.checkpoints import CheckpointStore
from trainlib._registry.early_client import EarlyClient, log_notes
from trainlib._registry.environment import Environment
from trainlib._registry.kept_files import ENVIRONMENT, PREPROCESSOR, TRAINER_SETTINGS
from trainlib._registry.metric_history import MetricHistory
from trainlib._registry.metric_writer import MetricWriter
from trainlib._registry.names import trial_id
from trainlib._registry.notes import Section, attempts_section, with_section
from trainlib._registry.ownership import Lease
from trainlib._registry.params import flat, stored_values
from trainlib._registry.patience import Patience
from trainlib._registry.recorded_run import Place, RecordedRun, just_created, read_run
from trainlib._registry.statuses import status_after
from trainlib._registry.unsaved import write_unsaved
from trainlib.config import CheckpointConfig
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_PARAMS_AT_ONCE = 100
UNSAVED = "unsaved.jsonl"


class RegisteredRun:
    """The MLflow run of one training, through all of its attempts and processes.

    Making this object does nothing: it asks no server and starts no thread. :func:`create_run` and
    :func:`continue_run` give a run that can be written.
    """

    def __init__(
        self, client: MlflowClient, recorded: RecordedRun, config: CheckpointConfig, *, continued: bool
    ) -> None:
        """
        Args:
            client: A client of the store that the run is in.
            recorded: The run as it is now.
            config: Which checkpoints it keeps.
            continued: Whether an earlier process began it.
        """
        self.client = client
        self.recorded = recorded
        """The run as it was before this process."""
        self.continued = continued
        self.lease: Lease | None = None
        """The hold that this process has on the run. A trial has that of its sweep."""
        self.trial_number = 0
        """Which trial of its sweep it is. A training by itself is the first of one."""
        self.sweep_id: str | None = None
        """The run of its sweep, if it is a trial."""
        self.store = recorded.place.store
        self.run_id = recorded.run_id
        self.experiment_id = recorded.place.experiment_id
        self.experiment_name = recorded.place.experiment_name
        self.artifact_root = recorded.place.artifact_root
        self.artifact_uri = recorded.artifact_uri
        self.name = recorded.name
        self.url = recorded.url
        self.log_dir: Path = recorded.log_dir
        self.flow_run_before = recorded.flow_run_id
        """The Prefect flow run that an earlier process worked in."""
        self.finished_in: str | None = None
        """The Prefect flow run that an earlier process has finished it in. None if it was not finished."""
        self.iterations_before = recorded.history.last_iteration
        """How far earlier processes came."""
        self.attempts = list(recorded.attempts)
        self.patience = Patience(recorded.place.patience_s, self.store.uri)
        self.checkpoints = CheckpointStore(
            client,
            run_id=self.run_id,
            experiment_id=self.experiment_id,
            artifact_root=self.artifact_root,
            log_dir=self.log_dir,
            config=config,
            saved=recorded.checkpoints.saved,
            patience=self.patience,
        )
        self.metrics = MetricWriter(
            client,
            self.run_id,
            last_steps=recorded.history.last_steps,
            unsaved=self.log_dir / UNSAVED,
            patience=self.patience,
        )

    @property
    def trial_id(self) -> str:
        """The short id by which training functions and callbacks know it. The trials of a sweep have its first part in common."""
        return trial_id(self.sweep_id or self.run_id, self.trial_number)

    def hand_over_history(self) -> MetricHistory:
        """The metrics that earlier processes recorded. They are not kept here after that: there may be many."""
        history = self.recorded.history
        self.recorded = replace(self.recorded, history=MetricHistory())
        return history

    # -- describing -----------------------------------------------------------------------------------

    def describe(self, params: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Write params once, and tags. MLflow refuses to change a param, so a continued run keeps its own."""
        new = [] if self.continued else list(stored_values(flat(params)).items())
        *batches, last = [new[i : i + _PARAMS_AT_ONCE] for i in range(0, len(new), _PARAMS_AT_ONCE)] or [[]]
        for batch in batches:
            self.patience(log_notes, self.client, self.run_id, params=dict(batch))
        self.patience(log_notes, self.client, self.run_id, params=dict(last), tags=tags)  # tags are written last

    def save_trainer(self, settings: bytes) -> None:
        """Keep with the run what another process needs to continue it, and what somebody needs to rebuild it."""
        if not (self.continued and TRAINER_SETTINGS.load(self.artifact_uri) == settings):
            TRAINER_SETTINGS.save(self.artifact_uri, settings, {ENVIRONMENT.name: Environment.here().dumps()})

    def save_preprocessor(self, preprocessor: bytes) -> None:
        """Keep the fitted preprocessor: whoever continues the run applies the same."""
        PREPROCESSOR.save(self.artifact_uri, preprocessor)

    def load_preprocessor(self) -> bytes | None:
        """What :meth:`save_preprocessor` kept, if anything."""
        return PREPROCESSOR.load(self.artifact_uri)

    # -- owning ---------------------------------------------------------------------------------------

    def require_owned(self) -> None:
        """Raise an error if another process has taken over the run. It must not be written then.

        Raises:
            RunLostError: another process has.
        """
        if self.lease is not None:
            self.lease.require()

    def _is_lost(self) -> bool:
        return self.lease is not None and self.lease.is_lost

    # -- recording ------------------------------------------------------------------------------------

    def record(self, attempt: AttemptRecord) -> None:
        """Leave a short record of an attempt that failed. If MLflow is away, it gets the record when it is back."""
        self.attempts.append(attempt)
        self.metrics.note(tags=attempt_tags(attempt))
        with contextlib.suppress(ConnectionFailedError):  # what the attempt failed with matters more
            self.metrics.flush()

    def record_success(self, attempt: AttemptRecord) -> None:
        """Leave the record of an attempt together with its last metrics, in one call.

        Raises:
            ConnectionFailedError: MLflow did not accept it, or was away for too long.
        """
        self.metrics.note(tags=attempt_tags(attempt))
        self.metrics.flush()
        self.attempts.append(attempt)

    def close(self, status: str, note: Sequence[Section] = ()) -> None:
        """Write what is left and end the run, with a status of :mod:`statuses`, unless another process has taken it over.

        Args:
            status: How it ended.
            note: What its description is to say, besides the attempts if some of them failed.

        Raises:
            ConnectionFailedError: MLflow did not accept it, or was away for too long. The run is ended when MLflow
                answers again while this process lives, or by the next process that continues it.
        """
        if self._is_lost():
            self.checkpoints.close()
            self._release()
            return
        ended = int(time.time() * 1000)

        def end() -> None:
            self.checkpoints.remove_strays()
            self.client.set_terminated(self.run_id, status, ended)
            self._write_note([*note, *([attempts_section(self.attempts)] if has_failed(self.attempts) else [])])

        try:
            self.checkpoints.close()
        finally:
            try:
                self.metrics.close(then=end)
            finally:
                self._release()

    def _write_note(self, sections: Sequence[Section]) -> None:
        """Put sections into the run's description, and leave what else people have written there."""
        from mlflow.exceptions import MlflowException

        if not sections:
            return
        with contextlib.suppress(MlflowException):  # the run has ended, and nobody waits for its description
            text = self.client.get_run(self.run_id).data.tags.get(names.MLFLOW_NOTE, "")
            for section in sections:
                text = with_section(text, section)
            self.client.set_tag(self.run_id, names.MLFLOW_NOTE, text)

    def _release(self) -> None:
        if self.lease is not None and self.lease.run_id == self.run_id:
            self.lease.release()

    def remarks(self) -> list[str]:
        """What a person should know of what was recorded since the last call."""
        return [*self.patience.remarks(), *self.checkpoints.remarks()]

    def set_tags(self, tags: Mapping[str, str]) -> None:
        """Set tags of the run at once, in one call."""
        self.patience(log_notes, self.client, self.run_id, tags=tags)

    def workers_started(self) -> None:
        """There will be something to write soon, so MLflow is imported, if it is not yet."""
        if isinstance(self.client, EarlyClient):
            self.client.load()


def create_run(
    client: MlflowClient, place: Place, config: CheckpointConfig, *, name: str, tags: Mapping[str, str]
) -> RegisteredRun:
    """Create a run that belongs to this process."""
    created = client.create_run(
        place.experiment_id,
        start_time=int(time.time() * 1000),
        tags={**tags, names.DRIVER: str(Process.this())},
        run_name=name,
    )
    try:
        run = RegisteredRun(client, just_created(created, place), config, continued=False)
        run.log_dir.mkdir(parents=True, exist_ok=True)
    except BaseException as error:
        client.set_terminated(created.info.run_id, status_after(error))
        raise
    return run


def continue_run(
    client: MlflowClient,
    run: Run,
    place: Place,
    config: CheckpointConfig,
    *,
    tags: Mapping[str, str],
    lost_message: str,
) -> RegisteredRun:
    """Make a run that an earlier process began belong to this one.

    What that process was saving when it ended is removed. If it could not record how its last attempt went, the
    attempt is recorded as lost, with ``lost_message``.
    """
    run_id, status = run.info.run_id, run.info.status
    attempts_known = len(recorded_attempts(run.data.tags))
    client.update_run(run_id, status="RUNNING")
    try:
        unsaved = just_created(run, place).log_dir / UNSAVED
        if unsaved.exists():
            write_unsaved(client, run_id, unsaved, Patience(place.patience_s, place.store.uri))
            run = client.get_run(run_id)
        recorded = read_run(client, run, place)
        continued = RegisteredRun(client, recorded, config, continued=True)
        continued.finished_in = recorded.flow_run_id if status == "FINISHED" else None
        is_over = continued.finished_in is not None and continued.finished_in == tags.get(names.FLOW_RUN_ID)
        not_stopped = {names.STOPPED: ""} if names.STOPPED in run.data.tags and not is_over else {}
        continued.set_tags({**tags, **not_stopped, names.DRIVER: str(Process.this())})
        continued.log_dir.mkdir(parents=True, exist_ok=True)
        continued.checkpoints.remove_unfinished(recorded.checkpoints.unfinished)
        # If the record of its last attempt was in the file, that process only could not say that it had ended.
        if status == "RUNNING" and len(recorded.attempts) == attempts_known:
            number = len(recorded.attempts) + 1
            continued.record(AttemptRecord(number, Outcome.LOST, None, message=lost_message))
    except BaseException as error:
        client.set_terminated(run_id, status_after(error))
        raise
    return continued
