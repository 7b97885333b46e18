"""Results as plots, with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib._drawing.ranking import ranked
from trainlib._training.summary import MetricCurve, curves_of
from trainlib.result import Result
from trainlib.tune._result_grid import ResultGrid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_grid", "plot_result"]

_MOST_NAMED = 10
_BEST = "#2563eb"  # it can be told from the others on a light and on a dark page


def plot_result(result: Result, metric: str | None, ax: Axes | None) -> Axes:
    """Draw how a metric went, with a dashed line where each further attempt went on."""
    curve = _chosen(curves_of(result.history), metric)
    ax = ax if ax is not None else _new_axes()
    _draw(ax, curve, label=curve.name)
    for number, iteration in enumerate(result.resumed_at, start=2):
        name = f"attempt {number}"
        ax.axvline(iteration, color="gray", linestyle="--", linewidth=1, label=name)
        ax.annotate(
            name,
            (iteration, 0.98),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="right",
            va="top",
            fontsize="small",
            color="gray",
        )
    return _labelled(ax, curve.name)


def plot_grid(grid: ResultGrid, metric: str | None, mode: str | None, ax: Axes | None) -> Axes:
    """Draw how a metric went in each trial, the best one on top of the others."""
    trials, chosen = ranked(grid, metric, mode)
    drawn = [(trial, trial.curve) for trial in trials if trial.curve is not None]
    if not drawn or chosen is None:
        raise _nothing_to_draw(
            metric or chosen, {name for result in grid for name in _names(curves_of(result.history))}
        )
    ax = ax if ax is not None else _new_axes()
    (best, curve), *others = drawn
    for rank, (trial, other) in reversed(list(enumerate(others))):
        named = {"label": trial.title} if rank < _MOST_NAMED - 1 else {}
        _draw(ax, other, linewidth=1, alpha=0.6, zorder=2, **named)
    _draw(ax, curve, color=_BEST, linewidth=2.5, zorder=3, label=f"best: {best.title}")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1])  # they were drawn from the worst to the best
    return _labelled(ax, chosen)


def _chosen(curves: list[MetricCurve], metric: str | None) -> MetricCurve:
    for curve in curves:
        if metric in (None, curve.name):
            return curve
    raise _nothing_to_draw(metric, set(_names(curves)))


def _names(curves: list[MetricCurve]) -> list[str]:
    return [curve.name for curve in curves]


def _nothing_to_draw(metric: str | None, reported: set[str]) -> ValueError:
    what = f"no finite {metric!r} was reported" if metric is not None else "no finite number was reported"
    return ValueError(
        f"{what}, so there is nothing to plot. What was reported: {', '.join(sorted(reported)) or 'nothing'}"
    )


def _draw(ax: Axes, curve: MetricCurve, **style: Any) -> None:
    iterations, values = zip(*curve.points, strict=True)
    ax.plot(iterations, values, marker="o" if len(values) == 1 else None, **style)


def _labelled(ax: Axes, metric: str) -> Axes:
    ax.set_xlabel("iteration")
    ax.set_ylabel(metric)
    return ax


def _new_axes() -> Axes:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plot() needs matplotlib, which trainlib is installed with: pip install matplotlib"
        ) from error
    return plt.subplots()[1]
