"""A sweep's description in MLflow: its trials, the best first, with links to their runs, and its plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from trainlib._registry.notes import Section, escaped
from trainlib._registry.urls import artifact_link, compare_link, run_link, trials_link
from trainlib.tune._domains import label

if TYPE_CHECKING:
    from trainlib.tune._trial import SweepTrial

__all__ = ["ranked", "trials_section"]

_COMPARED = 10


def trials_section(
    trials: Sequence[SweepTrial],
    *,
    experiment_id: str,
    run_id: str,
    metric: str | None,
    mode: str | None,
    plots: Iterable[str] = (),
) -> Section:
    """The table of a sweep's trials. MLflow's page of a run has no table of its children.

    Args:
        trials: Its trials.
        experiment_id: The experiment that it belongs to.
        run_id: Its own run.
        metric: What it optimises, if anything.
        mode: Whether a high or a low value of it is better.
        plots: The paths of its plots among its artifacts.
    """
    best_first = ranked(trials, mode)
    states = Counter(trial.state.value for trial in trials)
    links = [f"[Table of all trials]({trials_link(experiment_id, run_id)})"]
    compared = [found for trial in best_first[:_COMPARED] if (found := _run_id(trial)) is not None]
    if len(compared) > 1:
        links.append(f"[Compare the first {len(compared)}]({compare_link(experiment_id, compared)})")
    searched = list(dict.fromkeys(name for trial in trials for name in trial.shown))
    columns = ["trial", "state", "iterations", *([metric] if metric is not None else []), *searched]
    return Section(
        "Trials",
        intro=[" · ".join([*links, ", ".join(f"{count} {state}" for state, count in states.items())])],
        columns=[escaped(column) for column in columns],
        rows=[_cells(experiment_id, trial, metric, searched) for trial in best_first],
        outro=[f"![{path}]({artifact_link(run_id, path)})" for path in plots],
    )


def ranked(trials: Iterable[SweepTrial], mode: str | None) -> list[SweepTrial]:
    """Trials, the best first. Those that have failed, or have no score that can be compared, come last, by number."""

    def rank(trial: SweepTrial) -> tuple[bool, float, int]:
        score = trial.score if trial.error is None else None
        if score is None or not math.isfinite(score):
            return True, 0.0, trial.number
        return False, -score if mode == "max" else score, trial.number

    return sorted(trials, key=rank)


def _cells(experiment_id: str, trial: SweepTrial, metric: str | None, searched: Sequence[str]) -> list[str]:
    run_id = _run_id(trial)
    number = f"[{trial.number}]({run_link(experiment_id, run_id)})" if run_id is not None else str(trial.number)
    score = [_cell(trial.score)] if metric is not None else []
    settings = [_cell(trial.shown.get(name)) for name in searched]
    return [number, trial.state.value, str(trial.iteration), *score, *settings]


def _cell(value: Any) -> str:
    return escaped(label(value)) if value is not None else ""


def _run_id(trial: SweepTrial) -> str | None:
    result = trial.result or trial.before
    return result.run_id if result is not None else None
