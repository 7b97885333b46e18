"""Who decides after each report whether a training goes on: judges, asked in order.

A limit, the user's ``stop``, a stopper, a scheduler and the end of a sweep are all judges. The first one that does not say CONTINUE
wins; the others are not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainlib._registry.attempts import Outcome
from trainlib._training.stopping import should_stop, stops_all
from trainlib.config import Stop
from trainlib.result import Stopped

__all__ = ["GO_ON", "Judge", "Ruling", "Verdict", "rule", "stop_judges"]


class Verdict(StrEnum):
    """What becomes of a training after a report."""

    CONTINUE = "continue"
    """It goes on."""
    STOP = "stop"
    """It ends here, early, which is a success."""
    PAUSE = "pause"
    """Its workers are needed elsewhere: it ends here, and goes on later from its newest checkpoint."""


@dataclass(frozen=True)
class Judge:
    """Says after each report whether a training goes on."""

    ask: Callable[[dict[str, Any]], Verdict | Stopped]
    """Given a result, with everything that is filled in automatically. A limit says by :class:`Stopped` why it ends."""
    stopped_as: Outcome = Outcome.FINISHED
    """How an attempt that this judge stops is recorded."""
    in_step: bool = True
    """Whether each report waits on all ranks for its verdict. All ranks then end at the same report, and none is left alone
    in a collective."""
    between_reports: bool = False
    """Whether it is also asked twice a second when nothing is reported, so that it can end a silent training."""

    def __call__(self, result: dict[str, Any]) -> Verdict | Stopped:
        return self.ask(result)


@dataclass(frozen=True)
class Ruling:
    """What the judges decided, and how an attempt that ends by it is recorded."""

    verdict: Verdict
    outcome: Outcome
    stopped: Stopped | None = None
    """Which limit has ended the training, if one has."""


GO_ON = Ruling(Verdict.CONTINUE, Outcome.FINISHED)


def rule(judges: Sequence[Judge], result: dict[str, Any]) -> Ruling:
    """Ask one judge after the other; the first that does not say CONTINUE wins.

    Example:
        >>> enough = Judge(lambda result: Verdict.STOP if result["loss"] < 0.1 else Verdict.CONTINUE)
        >>> rule([enough], {"loss": 0.05}).verdict, rule([enough], {"loss": 0.5}).verdict
        (<Verdict.STOP: 'stop'>, <Verdict.CONTINUE: 'continue'>)
    """
    for judge in judges:
        match judge(result):
            case Verdict.STOP:
                return Ruling(Verdict.STOP, judge.stopped_as)
            case Verdict.PAUSE:
                return Ruling(Verdict.PAUSE, Outcome.PAUSED)
            case Stopped() as stopped:
                return Ruling(Verdict.STOP, Outcome(stopped.reason), stopped)
    return GO_ON


def stop_judges(stop: Stop, trial_id: str) -> list[Judge]:
    """The judges for what a user gave as ``RunConfig.stop``: none, bounds, a function or a stopper."""
    if stop is None:
        return []
    judges = [Judge(lambda result: _stop_if(should_stop(stop, trial_id, result)))]
    if hasattr(stop, "stop_all"):
        judges.append(Judge(lambda result: _stop_if(stops_all(stop)), between_reports=True))
    return judges


def _stop_if(condition: bool) -> Verdict:
    return Verdict.STOP if condition else Verdict.CONTINUE
