"""A sweep in the terminal: a live table of its trials. Without a terminal, one line per finished trial."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trainlib._autofilled import as_reported
from trainlib._flat import flattened
from trainlib._training.notebook import MovingLine, is_notebook
from trainlib._training.terminal import compact, in_full
from trainlib.tune._domains import label
from trainlib.tune._life import TrialState
from trainlib.tune._sweep import Sweep
from trainlib.tune._trial import SweepTrial, described

__all__ = ["SweepTerminal", "rows_of", "summary_of"]

_REFRESH_S = 0.25
_MOST_ROWS = 16
_WORKER = re.compile(r"rank \d+ \(node .*?, pid \d+\)")
_ATTEMPT = re.compile(r" \(attempt \d+\)")
_STYLES = {
    TrialState.RUNNING: "cyan",
    TrialState.TERMINATED: "green",
    TrialState.STOPPED: "yellow",
    TrialState.ERROR: "red",
}


class SweepTerminal:
    """Shows a sweep in the terminal. The sweep's thread updates it; trials add their output from their own threads.

    What workers print, and warnings, are shown at any ``verbose``: 0 shows nothing else, 1 the table, 2 also a line for each result, and 3 each
    result in full.
    """

    def __init__(self, name: str, verbose: int, *, is_watched: bool = True) -> None:
        """``is_watched`` is whether a person looks at this terminal. Otherwise it stays empty."""
        self.name = name
        self._verbose = verbose if is_watched else 0
        self._is_watched = is_watched
        self._console = Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None
        self._shown = 0.0
        self._line = MovingLine() if is_notebook() else None
        self._printed: set[int] = set()

    def say(self, text: str) -> None:
        if self._verbose:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Show what a person has to know, at any ``verbose``."""
        if self._is_watched:
            self._console.print(Text(text, style="yellow"), soft_wrap=True)

    def output(self, number: int, rank: int, text: str, is_error: bool) -> None:
        if not self._is_watched:
            return
        if is_error or self._live is not None:
            self._console.print(Text.assemble((f"[trial {number} rank {rank}] ", "dim"), text), soft_wrap=True)
        else:
            print(f"[trial {number} rank {rank}] {text}", flush=True)

    def result(self, number: int, result: dict[str, Any]) -> None:
        """Show a result of a trial, if this shows results."""
        if self._verbose < 2:
            return
        head = f"  iteration {result['training_iteration']}  {compact(result)}"
        self._console.print(Text.assemble((f"trial {number}", "bold"), head), soft_wrap=True)
        if self._verbose > 2:
            self._console.print(in_full(result), soft_wrap=True)

    def update(self, sweep: Sweep) -> None:
        """Show the present state of the sweep."""
        if not self._verbose:
            return
        if self._line is not None:
            self._line.show(f"{self.name}{_head(sweep)}")
        elif not self._console.is_terminal or self._verbose > 1:
            self._print_ended(sweep)
        if self._console.is_terminal and time.monotonic() - self._shown >= _REFRESH_S:
            if self._live is None:
                # Refreshed here: rich's own thread would take CPU time from the trials.
                self._live = Live(console=self._console, auto_refresh=False, transient=True)
                self._live.start()
            self._live.update(_table(self.name, sweep), refresh=True)
            self._shown = time.monotonic()

    def close(self, sweep: Sweep) -> None:
        """Show the final state of the sweep."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if not self._verbose:
            return
        if self._line is not None:
            self._line.show(f"{self.name}{_head(sweep)}", at_once=True)
        elif self._console.is_terminal:
            self._console.print(_table(self.name, sweep))
        else:
            self._print_ended(sweep)
        for line in summary_of(sweep):
            self._console.print(Text(line), soft_wrap=True)

    def _print_ended(self, sweep: Sweep) -> None:
        for trial in sweep.trials:
            if trial.number not in self._printed and trial.state.is_final:
                self._printed.add(trial.number)
                score = f"{sweep.metric}={label(trial.score)}" if sweep.metric else compact(own_metrics(trial))
                line = f"{trial.state.value} after {trial.iteration}  {score}"
                if trial.error is not None:
                    line += f"  {_first_line(trial.error)}"
                name = f"trial {trial.number}"
                self._console.print(
                    Text.assemble(
                        (name, "bold"), f"  {described(trial.shown)}  ", (line, _STYLES.get(trial.state, ""))
                    ),
                    soft_wrap=True,
                )


def own_metrics(trial: SweepTrial) -> dict[str, Any]:
    """The metrics that a trial's function reported last."""
    return flattened(as_reported(trial.latest))


def rows_of(sweep: Sweep, most: int) -> list[dict[str, str]]:
    """Rows for a table of trials: those that are running, the best one, and the newest of the others."""
    best = sweep.best()
    chosen = {trial.number: trial for trial in sweep.trials.running}
    ranked = sorted(sweep.trials, key=lambda trial: (trial is not best, -trial.number))
    for trial in ranked:
        if len(chosen) >= most:
            break
        chosen.setdefault(trial.number, trial)
    rows = []
    for trial in sorted(chosen.values(), key=lambda trial: trial.number):
        row = {"trial": f"{trial.number}{' ★' if trial is best else ''}", "state": trial.state.value}
        row["iteration"] = str(trial.iteration)
        row.update({name: label(value) for name, value in trial.shown.items()})
        if sweep.metric:
            row[sweep.metric] = label(trial.score) if trial.score is not None else ""
        else:
            row.update({name: label(value) for name, value in own_metrics(trial).items()})
        rows.append(row)
    return rows


def summary_of(sweep: Sweep) -> list[str]:
    """The result of a sweep in lines: how many trials in each state, each error once, and the best trial with its link."""
    states = Counter(trial.state for trial in sweep.trials)
    lines = [f"{len(sweep.trials)} trials: {', '.join(f'{count} {state.value}' for state, count in states.items())}"]
    errors = Counter(error_summary(trial.error) for trial in sweep.trials if trial.error is not None)
    lines += [f"failed {count}x: {error}" for error, count in errors.most_common()]
    best = sweep.best()
    if best is not None and best.result is not None and sweep.metric is not None:
        score = f"{sweep.metric} {label(best.score)}"
        lines.append(f"best: trial {best.number} · {described(best.shown)} · {score} · {best.result.run_url}")
    lines.append(f"sweep: {sweep.trials_url}")
    return lines


def error_summary(error: BaseException) -> str:
    """The message of an error, without the parts that differ between trials.

    Example:
        >>> error_summary(RuntimeError("rank 1 (node 10.0.0.1, pid 7) was killed (attempt 2)"))
        'a worker was killed'
    """
    cause = error.__cause__
    if cause is not None:
        return f"{type(cause).__name__}: {cause}"
    return _ATTEMPT.sub("", _WORKER.sub("a worker", _first_line(error)))


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _table(name: str, sweep: Sweep) -> Group:
    rows = rows_of(sweep, _MOST_ROWS)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        state = TrialState(row["state"])
        table.add_row(*(row.get(column, "") for column in columns), style=_STYLES.get(state, ""))
    more = len(sweep.trials) - len(rows)
    parts: list[Any] = [Text.assemble((name, "bold"), _head(sweep)), table]
    if more > 0:
        parts.append(Text(f"and {more} more", style="dim"))
    return Group(*parts)


def _head(sweep: Sweep) -> str:
    """How far a sweep is, on one line."""
    best = sweep.best()
    trials = sweep.trials
    head = f"  {trials.ended}/{sweep.plan.total or '∞'} trials, {len(trials.running)} running, {sweep.spent_s:.0f} s"
    if best is not None and sweep.metric is not None:
        head += f", best {sweep.metric} {label(best.score)} (trial {best.number})"
    return head
