"""The one writer of a run's metrics: batched, in order, one point for each metric and iteration.

Params and tags that can wait a moment go with the next batch: each call of MLflow costs as much as a short trial. While
MLflow is away, or slower than the training, everything goes to a file, and from there to MLflow.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._registry.metric_points import MetricPoints
from trainlib._registry.params import stored_params
from trainlib._registry.patience import Patience, is_away, short
from trainlib._registry.reported_checkpoints import ReportedCheckpoints
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.unsaved import BATCH, NOTES_AT_ONCE, Batch, UnsavedFile
from trainlib.errors import ConnectionFailedError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

GATHER_S = 0.25
RETRY_S = 2.0
_LOOK_S = 0.5
IN_MEMORY = 10_000
"""So many points wait in memory, some 4 MB. More of them wait in the file."""


class MetricWriter:
    """Writes points in the background. What MLflow does not accept now is kept in a file and tried again.

    Its thread starts when there is something to write, and not before. It ends when everything is written after
    :meth:`close`, also if that is long after: as long as the process lives, it goes on trying.
    """

    def __init__(
        self,
        client: MlflowClient,
        run_id: str,
        *,
        last_steps: dict[str, int],
        unsaved: Path,
        patience: Patience | None = None,
    ) -> None:
        """
        Args:
            client: A client of the run's store.
            run_id: The run.
            last_steps: The last iteration that each metric has a point of already. Up to there, no second one is written.
            unsaved: The file for points that MLflow does not accept.
            patience: How long to wait for MLflow.
        """
        self._client = client
        self._run_id = run_id
        self._points_of = MetricPoints(run_id, last_steps)
        self._unsaved = UnsavedFile(unsaved, run_id)
        self._patience = patience or Patience(600.0, client.tracking_uri)
        self._points: list[Metric] = []
        self._params: list[Param] = []
        self._tags: list[RunTag] = []
        self._sending = Batch()
        """What MLflow is being given now, unless it is from the file."""
        self._spill_at = IN_MEMORY
        self._reported_with = ReportedCheckpoints(run_id, self._patience)
        self._changed = threading.Condition()
        self._queued = 0
        self._written = 0
        self._flushing = 0
        self._is_due = False
        """Whether what is queued is written now, even if it has no points."""
        self._closed = False
        self._then: Callable[[], None] | None = None
        self._uses_file = False
        """Whether MLflow is away, or too slow, so that everything goes through the file."""
        self._refused: ConnectionFailedError | None = None
        self._is_over = True
        """Whether there is no thread, or one that has nothing left to do."""

    def write(
        self,
        iteration: int,
        metrics: Mapping[str, float],
        timestamp: float,
        *,
        checkpoint: Future[SavedCheckpoint] | None = None,
        again: bool = False,
    ) -> list[str]:
        """Queue the metrics of an iteration, without waiting. Returns what a person should know about them.

        Args:
            iteration: The iteration.
            metrics: Its metrics.
            timestamp: When they were reported, in seconds since 1970.
            checkpoint: What was reported with them, once MLflow knows it.
            again: They were written before, and the checkpoint was saved after that. MLflow keeps one of two points that are
                the same, and lists it with the checkpoint's logged model.
        """
        points, warnings = self._points_of.of(iteration, metrics, timestamp, again=again)
        with self._changed:
            if points and checkpoint is not None:
                self._reported_with.add(iteration, checkpoint)
            self._points += points
            self._queued += len(points)
            if len(self._points) >= self._spill_at:
                self._spill()
            self._start_if_needed()
            self._changed.notify_all()
        return warnings

    def note(
        self, params: Mapping[str, Any] | None = None, tags: Mapping[str, str] | None = None, *, soon: bool = False
    ) -> None:
        """Queue params and tags; they are written with the points that come next, or at :meth:`flush`.

        With ``soon``, no point is waited for.
        """
        from mlflow.entities import RunTag

        with self._changed:
            new = stored_params(params or {})
            self._params += new
            self._tags += [RunTag(key, value) for key, value in (tags or {}).items()]
            self._queued += len(new) + len(tags or ())
            if soon:
                self._is_due = True
                self._start_if_needed()
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when everything queued so far is written. What is queued meanwhile is not waited for.

        Raises:
            ConnectionFailedError: MLflow did not accept it, or was away for too long. It is in a file then.
        """
        with self._changed:
            self._start_if_needed()
            upto = self._queued
            self._flushing += 1
            self._changed.notify_all()
            try:
                self._wait_until(lambda: self._written >= upto)
            finally:
                self._flushing -= 1

    def close(self, then: Callable[[], None] | None = None) -> None:
        """Write what is left, call ``then``, and end the thread.

        Raises:
            ConnectionFailedError: MLflow did not accept it, or was away for too long. It is in a file then. The thread
                goes on: when MLflow answers while this process lives, it gets everything, and ``then`` is called.
        """
        with self._changed:
            self._closed, self._then = True, then
            self._start_if_needed()
            self._changed.notify_all()
            self._wait_until(lambda: self._is_over)

    def _wait_until(self, done: Callable[[], bool]) -> None:
        """Wait with the lock held. Raises an error for what was refused, once, and when MLflow is away for too long."""
        started = time.monotonic()
        while not done():
            if self._refused is not None and not self._closed:
                break
            # It may just have come back: at least one more try is waited for.
            if self._patience.is_over and self._patience.failed_since(started) and self._left():
                kept = f" What it has not recorded is in {self._unsaved.path}." if self._unsaved.exists else ""
                raise ConnectionFailedError(self._patience.complaint() + kept)
            self._changed.wait(_LOOK_S)
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    def _spill(self) -> None:
        """Move what waits to the file, in order. Called with the lock held. If the disk is full, it waits in memory."""
        waiting = Batch(tuple(self._points), tuple(self._params), tuple(self._tags))
        if not len(waiting):
            return
        try:
            # What is being sent is older, and would have to go to the file if MLflow turned out to be away.
            self._unsaved.append([*self._sending.entries, *waiting.entries])
        except OSError:
            self._spill_at = len(self._points) + IN_MEMORY
            return
        self._points, self._params, self._tags = [], [], []
        self._sending = Batch()
        self._spill_at = IN_MEMORY
        self._uses_file = True

    def _left(self) -> bool:
        return self._written < self._queued or self._then is not None

    def _start_if_needed(self) -> None:
        if self._is_over and (self._has_more() or self._then is not None):
            self._is_over = False
            threading.Thread(target=self._run, name="metric-writer", daemon=True).start()

    # -- in the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        over = False
        while not over:
            batch = self._next_batch()
            if self._uses_file:
                self._catch_up()
            elif len(batch):
                self._deliver(batch)
            elif self._then is None or self._finish():
                over = self._leave()

    def _leave(self) -> bool:
        """Nothing is left to do. Returns whether that is still so."""
        with self._changed:
            self._is_over = not self._has_more() and self._then is None
            self._changed.notify_all()
            return self._is_over

    def _next_batch(self) -> Batch:
        """What is to be written next; empty if there is nothing, and this writer is closed, or if all of it is in the file."""
        with self._changed:
            while not (self._points or self._closed or self._uses_file or (self._is_hurried() and self._has_more())):
                self._changed.wait()
            self._is_due = False
            if self._has_more() and not self._uses_file:
                self._changed.wait_for(
                    lambda: self._flushing or self._closed or self._uses_file or len(self._points) >= BATCH,
                    timeout=GATHER_S,
                )
            if self._uses_file:
                self._changed.wait_for(lambda: not self._patience.is_waiting, timeout=RETRY_S)
                self._spill()
                return Batch()
            params, self._params = self._params[:NOTES_AT_ONCE], self._params[NOTES_AT_ONCE:]
            tags, self._tags = self._tags[:NOTES_AT_ONCE], self._tags[NOTES_AT_ONCE:]
            most = BATCH - len(params) - len(tags)
            points, self._points = self._points[:most], self._points[most:]
            self._sending = Batch(tuple(points), tuple(params), tuple(tags))
            return self._sending

    def _deliver(self, batch: Batch) -> None:
        error: Exception | None = None
        try:
            self._patience.once(self._send, batch)
        except Exception as raised:  # whatever it is, the points must not be lost
            error = raised
        with self._changed:
            self._sending = Batch()
            if self._uses_file:  # it is in the file too, and counts when it is written from there
                return
            if error is None:
                self._count(batch)
            elif is_away(error):
                self._points = [*batch.points, *self._points]
                self._params, self._tags = [*batch.params, *self._params], [*batch.tags, *self._tags]
                self._uses_file = True
                self._spill()
            else:
                with contextlib.suppress(OSError):
                    self._unsaved.append(batch.entries)
                    self._unsaved.refused(self._unsaved.size)
                self._refuse(batch, error)

    def _catch_up(self) -> None:
        """Write what is in the file. Where MLflow is still away, that is tried again later."""
        while (found := self._next_in_file()) is not None:
            batch, end = found
            error: Exception | None = None
            try:
                self._patience.once(self._send, batch)
            except Exception as raised:
                error = raised
            with self._changed:
                if error is None:
                    self._unsaved.done(end)
                    self._count(batch)
                elif is_away(error):
                    return
                else:
                    self._unsaved.refused(end)
                    self._refuse(batch, error)

    def _next_in_file(self) -> tuple[Batch, int] | None:
        """The oldest entries of the file that MLflow does not have. None if it has all of them: then the file is removed."""
        found = self._unsaved.next_batch()  # without the lock: who adds to the file should not wait for it to be read
        if len(found[0]):
            return found
        with self._changed:
            found = self._unsaved.next_batch()
            if len(found[0]):
                return found
            if self._unsaved.exists:
                self._unsaved.remove()
            elif self._unsaved.was_written:  # another process continues the run, and has written all this
                self._abandon()
            self._uses_file = False
            return None

    def _finish(self) -> bool:
        """Do what is to be done at the end. Returns whether that is over."""
        assert self._then is not None
        try:
            self._patience.once(self._then)
        except Exception as error:
            if is_away(error):
                with self._changed, contextlib.suppress(OSError):
                    self._uses_file = True
                    self._unsaved.append([])  # so that another process can take over by removing it
                return False
            self._refuse(Batch(), error)
        self._then = None
        return True

    def _send(self, batch: Batch) -> None:
        replace(batch, points=self._reported_with.linked(batch.points)).send(self._client, self._run_id)

    def _count(self, batch: Batch) -> None:
        with self._changed:
            self._written += len(batch)
            self._reported_with.written(batch.points)
            self._changed.notify_all()

    def _refuse(self, batch: Batch, error: Exception) -> None:
        what = f"{len(batch.points)} metric points" if batch.points else "what was recorded"
        self._count(batch)
        with self._changed:
            kept = f" They are in {self._unsaved.path}." if batch.points else ""
            self._refused = ConnectionFailedError(f"MLflow did not accept {what} ({short(error)}).{kept}")
            self._changed.notify_all()

    def _abandon(self) -> None:
        with self._changed:
            self._then = None
            self._written = self._queued
            self._changed.notify_all()

    def _is_hurried(self) -> bool:
        return bool(self._flushing or self._is_due)

    def _has_more(self) -> bool:
        return bool(self._points or self._params or self._tags or self._uses_file)
