"""A Keras callback that reports and saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

from trainlib import session
from trainlib.checkpoint import Checkpoint
from trainlib.tensorflow._checkpoint import Progress, TensorflowCheckpoint

__all__ = ["ReportCheckpointCallback"]

_EVENTS = [
    f"{what}_{when}"
    for what in ("epoch", "train_batch", "test_batch", "predict_batch", "train", "test", "predict")
    for when in ("begin", "end")
]

# The current session, and how often it has called `fit`.
_session: object = None
_fits = 0


@cache
def _keras_callback(kind: Any) -> Any:
    """A subclass that is also a Keras callback."""
    import tensorflow as tf

    return type(kind.__name__, (kind, tf.keras.callbacks.Callback), {})


class ReportCheckpointCallback:
    """Reports Keras's metrics, saves the model with them, and resumes after a failed attempt.

    If an earlier attempt has saved with this callback, ``fit`` loads the weights and the state of the optimizer, and
    starts with the next epoch. Earlier calls of ``fit`` in the same function run again, since they may train other
    models, but are not reported again. A function that calls ``get_checkpoint()`` resumes by itself: then this callback
    only reports and saves.

    Args:
        checkpoint_on: the event or events to save on, e.g. ``"epoch_end"``.
        report_metrics_on: the event or events to report on. A checkpoint is always reported with its metrics.
        metrics: which of Keras's metrics to report. Default: all. A dict maps the names to report to Keras's names.
        resume: whether to resume from the checkpoint of an earlier attempt.

    Example:
        >>> from trainlib.tensorflow._keras import ReportCheckpointCallback
        >>> def train_func():
        ...     model.fit(data, epochs=10, callbacks=[ReportCheckpointCallback(metrics=["loss"])])
    """

    params: dict[str, Any] | None
    model: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        # It becomes a Keras callback only when it is created in a worker: importing it must not import TensorFlow.
        return super().__new__(_keras_callback(cls))  # type: ignore[no-any-return, arg-type]

    def __init__(
        self,
        checkpoint_on: str | Sequence[str] = "epoch_end",
        report_metrics_on: str | Sequence[str] = "epoch_end",
        metrics: str | Sequence[str] | Mapping[str, str] | None = None,
        resume: bool = True,
    ) -> None:
        super().__init__()
        self._checkpoint_on = _events(checkpoint_on, "checkpoint_on")
        self._report_on = _events(report_metrics_on, "report_metrics_on")
        self._metrics = {metrics: metrics} if isinstance(metrics, str) else metrics
        self._resume = resume
        self._fit = 0
        self._epochs = 0
        self._is_repeated = False
        for event in self._checkpoint_on | self._report_on:
            setattr(self, f"on_{event}", self._reporting(event, getattr(self, f"on_{event}")))

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras starts ``fit``."""
        global _session, _fits
        running = session.current("ReportCheckpointCallback")
        if _session is not running:
            _session, _fits = running, 0
        self._fit, self._epochs, self._is_repeated = _fits, 0, False
        _fits += 1
        if self._resume and not running.checkpoint_was_asked_for:
            self._resume_from(running.resume_from)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras starts an epoch."""
        self._epochs = epoch
        _start_at(self.model, None)  # Keras has read it by now, and it must not affect another fit

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras ends an epoch."""
        self._epochs = epoch + 1

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras ends ``fit``."""
        _start_at(self.model, None)

    def _resume_from(self, checkpoint: Checkpoint | None) -> None:
        if checkpoint is None or checkpoint.get_internal_representation()[0] == "dict":
            return
        saved = TensorflowCheckpoint.from_checkpoint(checkpoint)
        progress = saved.progress
        if progress is None or progress.fit < self._fit:
            return
        self._is_repeated = progress.fit > self._fit
        if self._is_repeated:
            return
        saved.load_into(self.model)
        self._epochs = progress.epochs
        _start_at(self.model, progress.epochs)

    def _reporting(self, event: str, hook: Any) -> Any:
        """Keras's hook for an event, followed by a report."""

        def report(*args: Any) -> None:
            hook(*args)
            logs = args[-1] if args and isinstance(args[-1], Mapping) else {}
            self._report(logs, saving=event in self._checkpoint_on)

        return report

    def _report(self, logs: Mapping[str, Any], saving: bool) -> None:
        if self._is_repeated:
            return
        # Every rank saves, although only rank 0's is kept: under a strategy, saving is a collective.
        progress = Progress(self._fit, self._epochs)
        checkpoint = TensorflowCheckpoint.from_model(self.model, progress=progress) if saving else None
        session.report(self._select_metrics(logs), checkpoint=checkpoint)

    def _select_metrics(self, logs: Mapping[str, Any]) -> dict[str, Any]:
        if self._metrics is None:
            return dict(logs)
        names = self._metrics if isinstance(self._metrics, Mapping) else {name: name for name in self._metrics}
        if not logs:
            return {}  # Keras has none at events such as train_begin
        if missing := [name for name in names.values() if name not in logs]:
            raise KeyError(f"Keras has no metric {', '.join(map(repr, missing))}. It has {', '.join(logs) or 'none'}")
        return {ours: logs[keras] for ours, keras in names.items()}


def _events(given: str | Sequence[str], argument: str) -> set[str]:
    events = {given} if isinstance(given, str) else set(given)
    if unknown := events - set(_EVENTS):
        raise ValueError(f"{argument} has {', '.join(map(repr, sorted(unknown)))}. Use any of {', '.join(_EVENTS)}")
    return events


def _start_at(model: Any, epoch: int | None) -> None:
    """Make the ``fit`` that has just begun start with this epoch, as Keras's own BackupAndRestore does."""
    if hasattr(model, "_training_state"):  # Keras 2
        model._training_state = None if epoch is None else _Counters(epoch)
    else:
        model._initial_epoch = epoch


class _Counters:
    """What Keras 2 asks for the initial epoch."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def maybe_load_initial_counters_from_ckpt(self, *_: Any, **__: Any) -> tuple[int, int]:
        return self._epoch, 0
