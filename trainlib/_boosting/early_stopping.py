"""Ends a training whose metrics improve no more. Pure: the ranks judge the same numbers, and so end at the same round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["EarlyStopping", "Score"]


class Score(NamedTuple):
    """A metric of a round."""

    name: str
    value: float
    higher_is_better: bool


class EarlyStopping:
    """Counts for how many rounds a metric has not improved.

    Args:
        patience: After so many rounds without an improvement it is over.
        min_delta: What counts as one: by more than this.

    Example:
        >>> stopping = EarlyStopping(patience=2)
        >>> [stopping.is_over(done, [Score("valid-error", value, False)]) for done, value in enumerate([0.5, 0.4, 0.4, 0.6], 1)]
        [False, False, False, True]
        >>> stopping.best_round
        2
    """

    def __init__(self, patience: int, min_delta: float = 0.0) -> None:
        self._patience = patience
        self._min_delta = min_delta
        self._best: dict[str, tuple[int, float]] = {}
        self._without: dict[str, int] = {}
        """For how many rounds a metric that has been no number yet was none."""
        self.best_round = 0
        """The one to use: the best by the metric that has ended the training, or by the first one. 0 before the first round."""

    def is_over(self, done: int, scores: Sequence[Score]) -> bool:
        """Judge the metrics of a round, the one after which ``done`` are done. The first that improves no more ends the training.

        Raises:
            ValueError: a metric was NaN in all rounds, and there were as many as it may take to improve.
        """
        for score in scores:
            best = self._best.get(score.name)
            if best is None or math.isnan(best[1]) or self._is_better(score, best[1]):
                self._best[score.name] = (done, score.value)
            if math.isnan(self._best[score.name][1]):
                self._without[score.name] = self._without.get(score.name, 0) + 1
                if self._without[score.name] >= self._patience:
                    raise ValueError(
                        f"Early stopping cannot judge by {score.name!r}: it was NaN in all of the first {self._without[score.name]} rounds. "
                        "Look at the labels of that dataset (an AUC needs both classes), choose another metric, or leave "
                        "early_stopping_rounds out"
                    )
        ended = [score.name for score in scores if done - self._best[score.name][0] >= self._patience]
        decisive = ended[:1] or [score.name for score in scores[:1]]
        self.best_round = self._best[decisive[0]][0] if decisive else 0
        return bool(ended)

    @property
    def best_rounds(self) -> set[int]:
        """Those that may turn out to be the one to use: the best by each metric."""
        return {done for done, _ in self._best.values()}

    def best_value(self, name: str) -> float:
        """The best that a metric has been."""
        return self._best[name][1]

    def _is_better(self, score: Score, best: float) -> bool:
        gain = score.value - best if score.higher_is_better else best - score.value
        return gain > self._min_delta

    # -- for an attempt that goes on from a checkpoint ---------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What :meth:`restore` takes, as JSON can store it."""
        return {"best": self._best, "best_round": self.best_round, "without": self._without}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on counting where another attempt has saved a checkpoint."""
        self._best = {name: (int(done), float(value)) for name, (done, value) in state["best"].items()}
        self.best_round = int(state["best_round"])
        self._without = dict(state.get("without", {}))
