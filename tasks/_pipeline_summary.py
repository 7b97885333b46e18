"""How a pipeline ended, as Markdown for the Prefect UI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainlib._data.manifest import PreprocessedData
from trainlib._registry.models import HeldOutScores, ModelVersion, Selection
from trainlib._registry.promotion import Decision

__all__ = ["PipelineFacts", "summary_of"]


@dataclass(frozen=True)
class PipelineFacts:
    """What the summary tells."""

    data: PreprocessedData
    best: Mapping[str, Any]
    selection: Selection
    held_out: HeldOutScores | None
    version: ModelVersion
    decision: Decision
    links: Mapping[str, str]
    """Pages in MLflow, by what they show."""


def summary_of(facts: PipelineFacts) -> str:
    """What was trained on which data, how good it is, and what was promoted, and why."""
    version, decision, selection, data = facts.version, facts.decision, facts.selection, facts.data
    outcome = "promoted" if decision.is_promoted else "not promoted"
    parts = [f"## {version.name} version {version.version}: {outcome}", "", f"{_reason(facts)}", ""]
    parts += _table(
        ["", "version", selection.metric],
        [
            ["new", version.version, _number(decision.new)],
            [f"`{version.alias}` before", decision.champion or "none", _number(decision.old)],
        ],
    )
    parts += [f"Compared on {decision.basis.value}; {'high' if selection.mode == 'max' else 'low'} is better.", ""]
    if decision.why_not is not None:
        parts += [f"Version {decision.champion} could not be evaluated on the same rows: {decision.why_not}", ""]
    rows = [
        ["source", f"`{data.source}`"],
        ["rows for training", str(data.train_rows)],
        ["rows for validation", str(data.validation_rows)],
        ["rows held out", str(data.test_rows)],
        ["split", data.split],
        ["preprocessor", f"`{data.preprocessor[:200]}`"],
        ["checkpoint", f"iteration {selection.iteration}, {selection.metric} {_number(selection.score)} in validation"],
    ]
    rows += [[f"{name} (best of the sweep)", f"`{value}`"] for name, value in facts.best.items()]
    if facts.held_out is not None:
        rows += [[f"{name} on held-out rows", _number(value)] for name, value in facts.held_out.metrics.items()]
    parts += _table(["", ""], rows)
    parts += [" · ".join(f"[{name}]({url})" for name, url in facts.links.items())]
    return "\n".join(parts)


def _reason(facts: PipelineFacts) -> str:
    version, decision = facts.version, facts.decision
    where = (
        f"The alias `{version.alias}` points to it now" if decision.is_promoted else f"`{version.alias}` was not moved"
    )
    return f"{where}: {decision.verdict.value}."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [*(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines), ""]
