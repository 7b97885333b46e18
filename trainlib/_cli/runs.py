"""``runs``, ``show`` and ``checkpoints``: what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainlib._cli import output, words
from trainlib._cli.options import Json, Limit, RunArgument, printable
from trainlib._registry.listing import RunState

if TYPE_CHECKING:
    from trainlib._registry.attempts import AttemptRecord
    from trainlib._registry.listing import CheckpointSummary, RunDetails, RunSummary

__all__ = ["COMMANDS", "details_json", "run_json", "show_details"]

_MOST_SHOWN = 10


def runs(
    experiment: Annotated[
        str | None, typer.Option(parser=printable, metavar="NAME", help="Only of this experiment.")
    ] = None,
    status: Annotated[RunState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Limit = 20,
    metric: Annotated[list[str] | None, typer.Option(help="Show this metric. Can be repeated.")] = None,
    trials: Annotated[bool, typer.Option("--trials", help="List the trials of sweeps too.")] = False,
    is_json: Json = False,
) -> None:
    """List trainings and sweeps, newest first."""
    from trainlib._cli.registry import recorded_runs

    found = recorded_runs(experiment=experiment, status=status, limit=limit, with_trials=trials)
    output.emit(
        {"runs": [run_json(run) for run in found]}, is_json, lambda _: _show_runs(found, metric or (), "No runs yet.")
    )


def show(run: RunArgument, is_json: Json = False) -> None:
    """Show a run: its settings, attempts, metrics, checkpoints and links."""
    from trainlib._cli.registry import details_of

    details = details_of(run)
    output.emit(details_json(details), is_json, lambda _: show_details(details))


def checkpoints(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", parser=printable, help="Only those of this run. Default: of all runs."),
    ] = None,
    limit: Limit = 50,
    is_json: Json = False,
) -> None:
    """List checkpoints, newest first. Their ids can be given to `fork` and `promote`."""
    from trainlib._cli.registry import checkpoints_of

    found = checkpoints_of(run, limit)
    output.emit({"checkpoints": found}, is_json, lambda _: _show_checkpoints(found))


COMMANDS = (runs, show, checkpoints)


def run_json(run: RunSummary) -> dict[str, Any]:
    """A run in the JSON of ``runs``."""
    return {**output.as_json(run), "seconds": round(run.seconds, 3)}


def details_json(details: RunDetails) -> dict[str, Any]:
    """A run in the JSON of ``show``."""
    facts = output.as_json(details)
    del facts["summary"]
    return {**run_json(details.summary), **facts, "trials": [run_json(trial) for trial in details.trials]}


def show_details(details: RunDetails) -> None:
    """Print everything about a run."""
    run = details.summary
    what = f"{run.kind}, {details.framework}" if details.framework else run.kind
    output.line(f"{run.name}  ({what})")
    facts = {
        "id": run.id,
        "experiment": run.experiment,
        "status": str(run.status),
        "started": f"{words.moment(run.started)}, took {words.duration(run.seconds)}",
        "forked from": details.forked_from or "",
        **details.links,
    }
    for name, value in facts.items():
        if value:
            output.line(f"{name:12} {value}")
    _section("Settings", ["setting", "value"], [[name, value] for name, value in details.settings.items()])
    _section("Metrics", ["metric", "last"], [[name, f"{value:.6g}"] for name, value in run.metrics.items()])
    attempts = ["attempt", "outcome", "where", "lost", "resumed from", "message"]
    _section("Attempts", attempts, [_attempt_row(attempt) for attempt in details.attempts])
    if details.checkpoints:
        output.line("\nCheckpoints")
        _show_checkpoints(details.checkpoints[:_MOST_SHOWN])
        _say_if_more(len(details.checkpoints), f"trainlib checkpoints {run.id}")
    if details.trials:
        output.line("\nTrials")
        _show_runs(details.trials[:_MOST_SHOWN], (), "")
        _say_if_more(len(details.trials), f"trainlib show {run.id} --json")


def _say_if_more(count: int, command: str) -> None:
    if count > _MOST_SHOWN:
        output.line(f"... and {count - _MOST_SHOWN} more: {command}")


def _attempt_row(attempt: AttemptRecord) -> list[str]:
    where = "" if attempt.rank is None else f"rank {attempt.rank} on {attempt.node}"
    lost = f"{attempt.lost_iterations} iterations" if attempt.lost_iterations else ""
    message = attempt.message.splitlines()[0] if attempt.message else ""
    return [str(attempt.number), str(attempt.outcome), where, lost, attempt.resumed_from or "", message]


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        filled = [place for place in range(len(columns)) if any(row[place] for row in rows)]
        columns, rows = [columns[place] for place in filled], [[row[place] for place in filled] for row in rows]
        output.line(f"\n{title}")
        output.table(columns, rows, folded=("value", "where", "resumed from", "message"))


def _show_runs(found: Sequence[RunSummary], metric: Sequence[str], otherwise: str) -> None:
    if not found:
        output.line(otherwise)
        return
    rows = [
        [
            run.name,
            str(run.status),
            words.moment(run.started),
            words.duration(run.seconds),
            words.metrics(run.metrics, metric),
            words.short_id(run.id, output.is_terminal()),
        ]
        for run in found
    ]
    output.table(["name", "status", "started", "took", "metrics", "id"], rows, folded=("name", "metrics"))


def _show_checkpoints(found: Sequence[CheckpointSummary]) -> None:
    if not found:
        output.line("No checkpoints yet.")
        return
    is_short = output.is_terminal()  # an id alone takes half of a line
    rows = [
        [
            each.id,
            str(each.iteration),
            words.short_id(each.run_id, is_short),
            words.metrics(each.metrics),
            *([] if is_short else [words.moment(each.saved), each.location]),
        ]
        for each in found
    ]
    columns = ["id", "iteration", "run", "metrics", *([] if is_short else ["saved", "location"])]
    output.table(columns, rows, folded=("metrics",))
