"""Rounds of boosting: how many are left, and what is reported and saved after each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.early_stopping import EarlyStopping, Score

if TYPE_CHECKING:
    from trainlib.checkpoint import Checkpoint

__all__ = ["Rounds", "threads"]

_STATE = "early_stopping.json"


class Rounds:
    """Counts the rounds of a training, and reports each of them on this rank.

    Args:
        total: How many rounds the model is to have.
        done: How many the checkpoint has that the training goes on from.
        early_stopping: Ends the training sooner.
    """

    def __init__(self, total: int, done: int, early_stopping: EarlyStopping | None = None) -> None:
        self.total = total
        self.done = done
        self.early_stopping = early_stopping
        self._measured: dict[int, dict[str, Any]] = {}
        """The metrics of the rounds that may turn out to be the best, if there is early stopping."""
        self._trees: dict[int, int] = {}
        """How many trees the model had after each of them, if that was said."""
        self._is_over = self._restore()
        # A retry may find that only the end of the training function was missing.
        if done >= total and session.get_context().get_attempt() == 1:
            raise ValueError(
                f"The checkpoint already has {done} rounds. Set num_boost_round above {done}: it counts all rounds of the model"
            )

    @property
    def left(self) -> int:
        """How many rounds are still to be trained."""
        return 0 if self._is_over else max(0, self.total - self.done)

    @property
    def best_trees(self) -> int:
        """How many trees the model had after the best round. 0 if that is not known."""
        return self._trees.get(self.early_stopping.best_round, 0) if self.early_stopping is not None else 0

    def end_round(self, scores: Sequence[Score], trees: int | None = None) -> bool:
        """Count a round. Returns whether it is the last one.

        Args:
            scores: What early stopping judges by.
            trees: How many trees the model has, if a round may have none.

        Raises:
            ValueError: there is early stopping, and nothing to judge by.
        """
        self.done += 1
        if self.early_stopping is not None and not scores:
            raise ValueError(
                "early_stopping_rounds is set, but no metric is measured. Name one in params, or leave early_stopping_rounds out"
            )
        is_over = self.early_stopping is not None and self.early_stopping.is_over(self.done, scores)
        if self.early_stopping is not None and trees is not None:
            self._trees[self.done] = trees
            self._trees = {each: self._trees[each] for each in self.early_stopping.best_rounds & {*self._trees}}
        self._is_over = is_over or self.done >= self.total
        return self._is_over

    def report(self, metrics: dict[str, Any], save: Callable[[], Checkpoint]) -> None:
        """Report the round that has just ended, and save the model if it is due, or if the training is stopped here. Rank 0 saves it.

        With early stopping, the last report has the metrics of the best round: the model that is saved with it predicts with that one.

        Args:
            metrics: What was measured after this round.
            save: Makes the checkpoint.
        """

        def saved() -> Checkpoint:
            made = save()
            self._keep(made)
            return made

        if self.early_stopping is not None:
            self._measured[self.done] = metrics
            self._measured = {
                each: self._measured[each] for each in self.early_stopping.best_rounds & {*self._measured}
            }
            if self._is_over:
                metrics = self._measured.get(self.early_stopping.best_round, metrics)
        running = session.current("report")
        config = running.checkpoint_config
        is_due = config.is_due(self.done, is_last=self._is_over)
        checkpoint = saved() if is_due and session.get_world_rank() == 0 else None
        running.report(metrics, checkpoint, when_stopped=saved if config.checkpoint_at_end is not False else None)

    def _keep(self, checkpoint: Checkpoint) -> None:
        """Keep with a checkpoint how far early stopping has counted: a retry ends at the same round."""
        if self.early_stopping is not None:
            run = session.get_context().get_run_id()
            state = {**self.early_stopping.state(), "is_over": self._is_over, "total": self.total, "run": run}
            state |= {"measured": self._measured, "trees": self._trees}
            (Path(checkpoint.path) / _STATE).write_text(json.dumps(state))

    def _restore(self) -> bool:
        """Count on from a checkpoint of this training. Returns whether it was over then. Another training's does not matter."""
        checkpoint = session.get_checkpoint()
        if self.early_stopping is None or checkpoint is None:
            return False
        with checkpoint.as_directory() as folder:
            file = Path(folder) / _STATE
            state = json.loads(file.read_text()) if file.exists() else {}
        if state.get("run") != session.get_context().get_run_id():
            return False
        self.early_stopping.restore(state)
        self._measured = {int(done): metrics for done, metrics in state.get("measured", {}).items()}
        self._trees = {int(done): trees for done, trees in state.get("trees", {}).items()}
        return bool(state["is_over"]) and state["total"] == self.total


def threads() -> int:
    """How many threads this worker may use: one for each CPU that it was given.

    ``OMP_NUM_THREADS`` may be a list, e.g. ``4,2``: its first number is that of threads that are not started by others.
    """
    outermost = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return max(1, int(outermost)) if outermost.isdecimal() else 1
