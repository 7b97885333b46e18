"""The last step of the pipeline: the new version takes the alias, if it is better, and if a person agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from trainlib._execution.causes import Cause
from trainlib._registry.models import AliasHolder, find_holder
from trainlib._registry.promotion import Candidate, Champion, Decision, Verdict, decide
from trainlib._training.evaluating import Evaluation
from trainlib.errors import CheckpointNotFoundError, TrainingFailedError
from trainlib.flows._approval import Answer, ask
from trainlib.tasks.evaluate import evaluate
from trainlib.tasks.promote import promote

__all__ = ["Promotion", "question"]

Say = Callable[[str], None]

_VERDICTS = {Answer.NO: Verdict.DECLINED, Answer.NONE: Verdict.UNANSWERED}


@dataclass(frozen=True)
class Promotion:
    """Which alias of which model is at stake, and how versions are compared."""

    model: str
    alias: str
    metric: str
    mode: Literal["max", "min"]
    evaluation: Evaluation | None
    """How the version that holds the alias is scored. None if trainings' own scores are compared."""
    approve_within_s: float | None
    """How long a person has to agree. None if nobody is asked."""

    def of(self, candidate: Candidate, say: Say) -> Decision:
        """Compare a new version with the one that holds the alias, and move the alias if the new one wins.

        If somebody else moves the alias meanwhile, all of it is done again, also the question.
        """
        while True:
            holder = find_holder(self.model, self.alias, self.metric)
            decision = decide(candidate, self._champion(holder, candidate, say), self.mode)
            if not decision.is_promoted or decision.verdict is Verdict.HOLDS_IT:
                return decision
            if self.approve_within_s is not None:
                text = question(self.model, self.alias, candidate.version, self.metric, decision)
                say(f"waiting for up to {self.approve_within_s:g} s for an answer: resume this flow run in Prefect")
                answer = ask(text, self.approve_within_s)
                if answer is not Answer.YES:
                    return decision.instead(_VERDICTS[answer])
            if promote(self.model, self.alias, candidate.version, decision.champion):
                return decision
            say(f"the alias {self.alias!r} was moved by somebody else meanwhile: comparing again")

    def _champion(self, holder: AliasHolder | None, candidate: Candidate, say: Say) -> Champion | None:
        if holder is None:
            return None
        if self.evaluation is None or holder.version == candidate.version:
            return Champion(holder.version, None, None, holder.recorded_held_out, holder.recorded)
        score, why_not = self._score(self.evaluation, holder)
        if why_not is not None:
            say(f"version {holder.version}, which has the alias, could not be evaluated: {why_not}")
        return Champion(holder.version, score, why_not, holder.recorded_held_out, holder.recorded)

    def _score(self, evaluation: Evaluation, holder: AliasHolder) -> tuple[float | None, str | None]:
        """What the version that holds the alias scores on the same rows, or why it cannot be evaluated."""
        if holder.location is None:
            return None, "it was not registered by trainlib, so that its checkpoint is not known"
        try:
            found = evaluate(evaluation, holder.location, f"version {holder.version}")
        except CheckpointNotFoundError as error:
            return None, str(error)
        except TrainingFailedError as error:
            if error.cause is not Cause.USER:
                raise  # it can be evaluated another time: nothing is promoted without
            return None, str(error)
        if self.metric not in found:
            return None, f"its evaluation gives no {self.metric!r}, but {', '.join(found) or 'nothing'}"
        return found[self.metric], None


def question(model: str, alias: str, version: str, metric: str, decision: Decision) -> str:
    """What a person is asked, as Markdown."""
    new, old = (f"{score:.4g}" if score is not None else "-" for score in (decision.new, decision.old))
    holder = f"version {decision.champion}" if decision.champion is not None else "no version"
    return "\n".join(
        [
            f"**Promote version {version} of {model}?** The alias `{alias}` is held by {holder}.",
            "",
            f"| | version | {metric} |",
            "|---|---|---|",
            f"| new | {version} | **{new}** |",
            f"| `{alias}` now | {decision.champion or '-'} | {old} |",
            "",
            f"Measured on {decision.basis.value}.",
        ]
    )
