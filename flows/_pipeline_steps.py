"""The steps of the pipeline, one after the other.

Each can be repeated: data are preprocessed once, a sweep and a training of a flow run that is retried go on where they were, a
checkpoint becomes a version once, and the alias moves last. So whatever ends a run, the registry is as it was, or has a version
that is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prefect.logging import get_run_logger
from rich.console import Console

from trainlib._data.manifest import PreprocessedData
from trainlib._digest import digest
from trainlib._registry.models import HeldOutScores, ModelVersion, Selection
from trainlib._registry.params import flat
from trainlib._registry.promotion import Candidate, Decision
from trainlib._secrets import masked
from trainlib._training.evaluating import Evaluation
from trainlib.callbacks._mlflow import store_of
from trainlib.errors import MetricNotReportedError
from trainlib.flows._fields import about_missing
from trainlib.flows._local import shows_trainings
from trainlib.flows._promoting import Promotion
from trainlib.flows.pipeline_spec import PipelineSpec
from trainlib.flows.sweep import sweep_here
from trainlib.flows.train import train_here
from trainlib.result import Result
from trainlib.tasks.evaluate import evaluate
from trainlib.tasks.preprocess import preprocess
from trainlib.tasks.register_version import register_version
from trainlib.tasks.select_checkpoint import select_checkpoint
from trainlib.tune._result_grid import ResultGrid

__all__ = ["PipelineResult", "run_steps"]


@dataclass(frozen=True)
class PipelineResult:
    """The results of the pipeline's steps."""

    data: PreprocessedData
    sweep: ResultGrid | None
    """None if there was nothing to try."""
    best: dict[str, Any]
    """The settings that the sweep has found, by setting of the trainer."""
    training: Result
    selection: Selection
    held_out: HeldOutScores | None
    """What the checkpoint scores on the held-out rows. None if no function evaluates it."""
    version: ModelVersion
    decision: Decision
    """Whether the version was promoted, and why."""

    @property
    def summary(self) -> str:
        """How it ended, in one sentence.

        It is the message of the flow run's last state.
        """
        version, decision = self.version, self.decision
        scores = f"{self.selection.metric} {decision.new:.4g}"
        if decision.old is not None:
            scores += f", version {decision.champion} has {decision.old:.4g}"
        outcome = "is promoted" if decision.is_promoted else "is registered, but not promoted"
        return (
            f"Version {version.version} of {version.name} {outcome}: {decision.verdict.value} ({scores}, on "
            f"{decision.basis.value})."
        )


def run_steps(spec: PipelineSpec) -> PipelineResult:
    """Run the pipeline within the flow run that this is called in.

    Raises:
        ValueError: a function that the spec names cannot be loaded.
        DataError: the data cannot be used.
        LookupError: no checkpoint was reported with the metric.
        MetricNotReportedError: the evaluation does not give the metric.
    """
    function = spec.evaluation_function()
    spec.require_possible()
    say = _Steps(["preprocess", *(["sweep"] if spec.has_sweep else []), "train", "select", "evaluate", "register"])
    say.step(f"preprocessing {spec.data.source}")
    with about_missing("source"):
        data = preprocess(spec.data, say=say.line if shows_trainings.get() else None)
    sweep, best = _sweep(spec, data, say)
    say.step(f"training on {data.train_rows} rows, validating on {data.validation_rows}")
    inspected = spec.train_on(data, best)
    with store_of(inspected.trainer.run_config).in_use():  # the model is registered where the training is recorded
        training = train_here(inspected)
        assert training.run_id is not None
        say.step(f"selecting the checkpoint with the {'highest' if spec.mode == 'max' else 'lowest'} {spec.metric}")
        selection = select_checkpoint([training.run_id], spec.metric, spec.mode)
        evaluation = None
        if function is not None:
            assert data.test is not None
            evaluation = Evaluation(function, data.test, inspected.trainer)
        held_out = _evaluate(spec, data, selection, evaluation, say)
        say.step(f"registering it as {spec.model_name}")
        version = register_version(selection, spec.model_name, held_out)
        candidate = Candidate(version, selection.score, held_out.metrics[spec.metric] if held_out else None)
        promotion = Promotion(
            model=spec.model_name,
            alias=spec.alias,
            metric=spec.metric,
            mode=spec.mode,
            evaluation=evaluation,
            approve_within_s=spec.approval.seconds,
        )
        decision = promotion.of(candidate, say.line)
    registered = ModelVersion(spec.model_name, version, spec.alias, decision.is_promoted, decision.old)
    return PipelineResult(data, sweep, best, training, selection, held_out, registered, decision)


def _sweep(spec: PipelineSpec, data: PreprocessedData, say: _Steps) -> tuple[ResultGrid | None, dict[str, Any]]:
    """The sweep, if there is one, and the best settings that it has found."""
    if not spec.has_sweep:
        return None, {}
    tuner = spec.sweep_on(data).tuner()
    say.step(f"trying settings: {', '.join(tuner.plan.space.domains)}")
    grid = sweep_here(tuner)
    # The best iteration of a trial counts: of the training, too, the best checkpoint is taken.
    best = grid.get_best_result(scope="all").config
    say.line(f"the best settings are {', '.join(f'{name}={value}' for name, value in flat(masked(best)).items())}")
    return grid, best


def _evaluate(
    spec: PipelineSpec, data: PreprocessedData, selection: Selection, evaluation: Evaluation | None, say: _Steps
) -> HeldOutScores | None:
    if evaluation is None:
        say.step(
            f"no function evaluates it: the {spec.metric} that trainings have reported, {selection.score:.4g} here, is compared"
        )
        return None
    say.step(f"evaluating it on {data.test_rows} held-out rows")
    found = evaluate(evaluation, selection.location, "the new checkpoint")
    if spec.metric not in found:
        raise MetricNotReportedError(
            f"{spec.evaluate} returned {', '.join(map(repr, found)) or 'nothing'}, but versions are compared by "
            f"{spec.metric!r}. Return it, or set metric to one of these."
        )
    return HeldOutScores(found, data.test_rows, data.test_digest or "", digest(evaluation.function))


class _Steps:
    """Says which step begins, and how many there are: in Prefect's log, and in the terminal of a script."""

    def __init__(self, names: list[str]) -> None:
        self._total = len(names)
        self._number = 0

    def step(self, text: str) -> None:
        self._number += 1
        self.line(f"{self._number}/{self._total} {text}")

    def line(self, text: str) -> None:
        get_run_logger().info(text)
        if shows_trainings.get():  # else the log is in the terminal
            Console(stderr=True, highlight=False).print(text, soft_wrap=True, markup=False)
