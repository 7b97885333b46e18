"""A Keras callback that reports and saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

from trainlib import session
from trainlib.tensorflow.checkpoint import TensorflowCheckpoint

__all__ = ["ReportCheckpointCallback"]

_EVENTS = [
    f"{what}_{when}"
    for what in ("epoch", "train_batch", "test_batch", "predict_batch", "train", "test", "predict")
    for when in ("begin", "end")
]

# The session whose model has been given its checkpoint: that is done once.
_resumed: object = None


@cache
def _keras_callback(kind: Any) -> Any:
    """The class as a Keras callback."""
    import tensorflow as tf

    return type(kind.__name__, (kind, tf.keras.callbacks.Callback), {})


class ReportCheckpointCallback:
    """Reports Keras's metrics, saves the model with them, and goes on where an earlier attempt ended.

    When ``fit`` begins and there is a checkpoint of this callback, the model gets its weights, its optimizer
    the state, and ``fit`` starts with the epoch after it. A function that calls ``fit`` for one epoch at a time
    counts the epochs itself, and is left to load what it needs.

    Args:
        checkpoint_on: the event or events to save on, e.g. ``"epoch_end"``.
        report_metrics_on: the event or events to report on. A checkpoint is always reported with its metrics.
        metrics: which of Keras's metrics to report, all by default; a dict gives them other names.
        resume: whether to go on from the checkpoint of an earlier attempt.

    Example:
        >>> from trainlib.tensorflow.keras import ReportCheckpointCallback
        >>> def train_func():
        ...     model.fit(data, epochs=10, callbacks=[ReportCheckpointCallback(metrics=["loss"])])
    """

    params: dict[str, Any] | None
    model: Any

    def __new__(cls, *_: Any, **__: Any) -> Self:
        # It becomes a Keras callback only when it is made, in a worker: naming it in a script imports no TensorFlow.
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
        self._epoch = 0
        for event in self._checkpoint_on | self._report_on:
            setattr(self, f"on_{event}", self._reporting(event, getattr(self, f"on_{event}")))

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keras starts an epoch."""
        self._epoch = epoch

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras starts ``fit``."""
        global _resumed
        running = session.current("ReportCheckpointCallback")
        if self._resume and _resumed is not running:
            _resumed = running
            self._go_on()

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Keras ends ``fit``."""
        _start_at(self.model, None)

    def _go_on(self) -> None:
        checkpoint = session.get_checkpoint()
        epochs = (self.params or {}).get("epochs", 1)
        if checkpoint is None or checkpoint.get_internal_representation()[0] == "dict" or epochs == 1:
            return
        saved = TensorflowCheckpoint(checkpoint.path)
        if (epoch := saved.epoch) is not None and epoch < epochs:
            saved.load_into(self.model)
            _start_at(self.model, epoch + 1)

    def _reporting(self, event: str, hook: Any) -> Any:
        """Keras's hook for an event, followed by the report."""

        def report(*args: Any) -> None:
            hook(*args)
            logs = args[-1] if args and isinstance(args[-1], Mapping) else {}
            self._report(logs, saving=event in self._checkpoint_on)

        return report

    def _report(self, logs: Mapping[str, Any], saving: bool) -> None:
        # Every rank saves, although rank 0's is kept: under a strategy that takes a collective.
        checkpoint = TensorflowCheckpoint.from_model(self.model, epoch=self._epoch) if saving else None
        session.report(self._chosen(logs), checkpoint=checkpoint)

    def _chosen(self, logs: Mapping[str, Any]) -> dict[str, Any]:
        if self._metrics is None:
            return dict(logs)
        names = self._metrics if isinstance(self._metrics, Mapping) else {name: name for name in self._metrics}
        if missing := [name for name in names.values() if name not in logs]:
            raise KeyError(f"Keras has no metric {', '.join(map(repr, missing))}: it has {', '.join(logs) or 'none'}")
        return {ours: logs[keras] for ours, keras in names.items()}


def _events(given: str | Sequence[str], argument: str) -> set[str]:
    events = {given} if isinstance(given, str) else set(given)
    if unknown := events - set(_EVENTS):
        raise ValueError(f"{argument} has {', '.join(map(repr, sorted(unknown)))}: use any of {', '.join(_EVENTS)}")
    return events


def _start_at(model: Any, epoch: int | None) -> None:
    """Have the ``fit`` that has just begun start with this epoch, in the way of Keras's own BackupAndRestore."""
    if hasattr(model, "_training_state"):  # Keras 2
        model._training_state = None if epoch is None else _Counters(epoch)
    else:
        model._initial_epoch = epoch


class _Counters:
    """What Keras 2 asks for the epoch to start with."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch

    def maybe_load_initial_counters_from_ckpt(self, *_: Any, **__: Any) -> tuple[int, int]:
        return self._epoch, 0
