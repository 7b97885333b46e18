"""What came of a training, as Markdown for the Prefect UI. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainlib._execution.waiting import SuspendedInThreadError
from trainlib._masked_text import masked_text
from trainlib._registry.attempts import AttemptRecord, Outcome, stopped_by
from trainlib._training.summary import MetricCurve, TrainingSummary, curves_of
from trainlib.tasks._charts import chart

__all__ = ["headline", "report"]

_MOST_METRICS = 12
_MOST_CHARTS = 4
_MOST_CHECKPOINTS = 10
_MOST_ATTEMPTS = 20
_LONGEST_MESSAGE = 300
_SUCCESSES = (Outcome.FINISHED, Outcome.STOPPED, Outcome.PAUSED)


def headline(summary: TrainingSummary, curves: Sequence[MetricCurve]) -> str:
    """How it ended, on one line.

    Example:
        >>> curves = [MetricCurve("accuracy", ((1, 0.5), (2, 0.9), (3, 0.8)))]
        >>> headline(TrainingSummary("digits", "", "", (), (), "accuracy", "max", [], None), curves)
        'Finished · best accuracy 0.9 (iteration 2)'
        >>> headline(TrainingSummary("digits", "", "", (), (), None, "max", [], ValueError("no")), curves)
        'Failed · last accuracy 0.8 (iteration 3)'
    """
    if not curves:
        return _ending(summary)
    curve = curves[0]
    if curve.name == summary.score:
        word, (iteration, value) = "best", curve.highest if summary.order == "max" else curve.lowest
    else:
        word, (iteration, value) = "last", curve.last
    return f"{_ending(summary)} · {word} {curve.name} {value:.4g} (iteration {iteration})"


def report(summary: TrainingSummary) -> tuple[str, str]:
    """The whole report, and its headline. Reads all that was reported."""
    curves = curves_of(summary.rows, first=summary.score)
    first_line = headline(summary, curves)
    parts = [f"## {_text(summary.name)}", f"**{first_line}** · [Metrics and checkpoints in MLflow]({summary.url})"]
    if summary.error is not None:
        parts.append(f"> {_text(str(summary.error) or type(summary.error).__name__)}")
    parts += [*_metrics(curves), *_attempts(summary.attempts), *_checkpoints(summary)]
    return "\n\n".join(parts), first_line


def _ending(summary: TrainingSummary) -> str:
    error = summary.error
    if error is None:
        return "Stopped" if stopped_by(summary.attempts) is not None else "Finished"
    if isinstance(error, SuspendedInThreadError):
        return "Suspended"
    return "Failed" if isinstance(error, Exception) else "Ended by somebody"


def _metrics(curves: Sequence[MetricCurve]) -> list[str]:
    if not curves:
        return ["No metric was reported."]
    rows = [
        (f"`{curve.name}`", _value(curve.last), _value(curve.lowest), _value(curve.highest))
        for curve in curves[:_MOST_METRICS]
    ]
    more = [f"{len(curves) - _MOST_METRICS} more are in MLflow."] if len(curves) > _MOST_METRICS else []
    charts = [chart(curve) for curve in curves[:_MOST_CHARTS] if len(curve.points) > 1]
    table = _table(("metric", "last (iteration)", "lowest", "highest"), rows)
    return ["### Metrics", table, *more, *([" ".join(charts)] if charts else [])]


def _value(point: tuple[int, float]) -> str:
    return f"{point[1]:.4g} ({point[0]})"


def _attempts(attempts: Sequence[AttemptRecord]) -> list[str]:
    shown = attempts[-_MOST_ATTEMPTS:]
    if not shown:
        return []
    rows = [
        (
            str(each.number),
            each.outcome.value if each.outcome in _SUCCESSES else f"**{each.outcome.value}**",
            each.resumed_from or "the start",
            f"{each.lost_iterations} iteration(s)" if each.lost_iterations else "nothing",
            f"rank {each.rank} on {each.node}" if each.rank is not None else "",
        )
        for each in shown
    ]
    table = _table(("attempt", "how it ended", "began from", "work lost", "where"), rows)
    # Not in the table: its cells do not wrap.
    reasons = [f"- attempt {each.number}: {_text(each.message)}" for each in shown if each.message]
    return ["### Attempts", table, *(["\n".join(reasons)] if reasons else [])]


def _checkpoints(summary: TrainingSummary) -> list[str]:
    shown = summary.checkpoints[:_MOST_CHECKPOINTS]
    if not shown:
        return ["### Checkpoints", "None was saved."]
    score = summary.score or "score"
    rows = [
        (
            f"checkpoint_{each.index:06d}",
            str(each.iteration),
            f"{each.score:.4g}" if each.score is not None else "",
            f"`{each.model_id}`",
        )
        for each in shown
    ]
    title = f"Of {len(summary.checkpoints)} that are kept, the best first, in `{summary.artifacts}`:"
    return ["### Checkpoints", title, _table(("checkpoint", "iteration", score, "id in MLflow"), rows)]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _text(text: str) -> str:
    """A text without secrets that Markdown takes for nothing else, on one line."""
    line = " ".join(masked_text(text).split())
    line = line if len(line) <= _LONGEST_MESSAGE else line[:_LONGEST_MESSAGE] + " ..."
    return line.translate({ord(character): f"\\{character}" for character in "\\`*_{}[]<>#|!"})
