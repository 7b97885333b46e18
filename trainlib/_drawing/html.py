"""Results as HTML, which a notebook shows: a table, the curve and the links. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from trainlib._drawing.ranking import RankedTrial, ranked
from trainlib._drawing.svg import svg_of
from trainlib._masked_text import masked_text
from trainlib._secrets import masked
from trainlib._training.summary import MetricCurve, curves_of
from trainlib.result import Result
from trainlib.tune._result_grid import ResultGrid

__all__ = ["html_of_grid", "html_of_result"]

_MOST_METRICS = 12
_MOST_CURVES = 2
_MOST_TRIALS = 20
_MOST_LINES = 50
_LONGEST = 300


def html_of_result(result: Result) -> str:
    """A training: how it ended, each metric, its first curves with attempts marked, and where to look further."""
    curves = curves_of(result.history)
    parts = [f"<b>{escape(_ending(result))}</b>", *_facts(result)]
    if curves:
        parts.append(_table(("metric", "last", "lowest", "highest"), map(_metric_row, curves[:_MOST_METRICS])))
    parts += [svg_of([curve], resumed_at=result.resumed_at) for curve in curves[:_MOST_CURVES]]
    parts.append(_links(("MLflow", result.run_url), ("Prefect", result.flow_run_url)))
    return _page(parts)


def html_of_grid(grid: ResultGrid) -> str:
    """A sweep: its trials with the best one first, their curves with the best one on top, and where to look further."""
    trials, metric = ranked(grid, None, None)
    failed = f", {grid.num_errors} failed" if grid.num_errors else ""
    parts = [f"<b>{len(grid)} trials{failed}</b>"]
    if trials:
        names = list(dict.fromkeys(name for trial in trials for name in trial.params))
        head = ["trial", "state", *([metric] if metric else []), *names, "iterations"]
        parts.append(_table(head, (_trial_row(trial, metric, names) for trial in trials[:_MOST_TRIALS]), is_html=True))
        if len(trials) > _MOST_TRIALS:
            parts.append(f"and {len(trials) - _MOST_TRIALS} more")
    if curves := [trial.curve for trial in trials if trial.curve is not None]:
        parts.append(svg_of(curves[:_MOST_LINES]))
    parts.append(_links(("Trials in MLflow", grid.trials_url), ("The sweep in MLflow", grid.run_url)))
    return _page(parts)


def _ending(result: Result) -> str:
    if result.error is not None:
        return "Failed"
    return f"Stopped: {result.stopped}" if result.stopped is not None else "Finished"


def _facts(result: Result) -> Iterable[str]:
    if result.error is not None:
        yield f"<code>{_text(f'{type(result.error).__name__}: {result.error}')}</code>"
    if result.attempts > 1:
        yield f"{result.attempts} attempts"
    if result.checkpoint is not None and result.checkpoint.uri is not None:
        yield f"Newest checkpoint: <code>{_text(result.checkpoint.path)}</code>"
    if result.log_dir is not None:
        yield f"Logs: <code>{_text(str(result.log_dir))}</code>"


def _metric_row(curve: MetricCurve) -> tuple[str, ...]:
    return curve.name, *(f"{value:.4g} ({at})" for at, value in (curve.last, curve.lowest, curve.highest))


def _trial_row(trial: RankedTrial, metric: str | None, names: Sequence[str]) -> tuple[str, ...]:
    result = trial.result
    link = _link(str(trial.number), result.run_url)
    score = [f"{trial.score:.4g}" if trial.score is not None else ""] if metric else []
    shown = masked(trial.params)
    params = [escape(str(shown.get(name, ""))) for name in names]
    return link, escape(_ending(result)), *score, *params, str((result.metrics or {}).get("training_iteration", ""))


def _table(head: Iterable[str], rows: Iterable[Sequence[str]], *, is_html: bool = False) -> str:
    def cells(row: Iterable[str], tag: str, *, as_it_is: bool = False) -> str:
        return f"<tr>{''.join(f'<{tag}>{cell if as_it_is else escape(cell)}</{tag}>' for cell in row)}</tr>"

    body = "".join(cells(row, "td", as_it_is=is_html) for row in rows)
    return f"<table><thead>{cells(head, 'th')}</thead><tbody>{body}</tbody></table>"


def _links(*links: tuple[str, str | None]) -> str:
    return " · ".join(_link(text, url) for text, url in links if url)


def _link(text: str, url: str | None) -> str:
    return f'<a href="{escape(url)}" target="_blank">{escape(text)}</a>' if url else escape(text)


def _text(value: str) -> str:
    return escape(masked_text(value)[:_LONGEST])


def _page(parts: Iterable[Any]) -> str:
    return f"<div>{''.join(f'<div>{part}</div>' for part in parts if part)}</div>"
