"""What the callbacks for training functions of the user's own report: chosen metrics of a round, and a model now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    from trainlib.checkpoint import Checkpoint

__all__ = ["RoundReports"]

Metrics = dict[str, Any]


class RoundReports:
    """Reports rounds as the arguments of a callback ask for.

    Args:
        metrics: Which metrics are reported, and as what. Default: all.
        frequency: After how many rounds a model is saved. 0: at the end only.
        checkpoint_at_end: Whether the model of the last round is saved, also if the training is stopped.
        change: Changes what is reported.
    """

    def __init__(
        self,
        metrics: str | Sequence[str] | Mapping[str, str] | None,
        frequency: int,
        checkpoint_at_end: bool,
        change: Callable[[Metrics], Metrics] | None,
    ) -> None:
        chosen = [metrics] if isinstance(metrics, str) else metrics or ()
        self._names = dict(chosen) if isinstance(chosen, Mapping) else {name: name for name in chosen}
        self._frequency = frequency
        self._checkpoint_at_end = checkpoint_at_end
        self._change = change

    def report(self, measured: Metrics, done: int, save: Callable[[], Checkpoint], *, is_last: bool) -> None:
        """Report a round. All ranks have to call this; rank 0 saves.

        Args:
            measured: All metrics of the round, as ``<dataset>-<metric>``.
            done: How many rounds are done.
            save: Makes the checkpoint.
            is_last: Whether it is the last round.
        """
        is_due = (is_last and self._checkpoint_at_end) or (self._frequency > 0 and done % self._frequency == 0)
        checkpoint = save() if is_due and session.get_world_rank() == 0 else None
        running = session.current("RayTrainReportCallback")
        running.report(self._chosen(measured), checkpoint, when_stopped=save if self._checkpoint_at_end else None)

    def _chosen(self, measured: Metrics) -> Metrics:
        if missing := [name for name in self._names.values() if name not in measured]:
            raise InvalidArgumentError(
                f"RayTrainReportCallback was asked to report {missing[0]!r}, but the metrics are {', '.join(map(repr, measured)) or 'none'}. "
                "A metric is named <dataset>-<metric>"
            )
        found = {reported: measured[name] for reported, name in self._names.items()} or measured
        return self._change(found) if self._change is not None else found
