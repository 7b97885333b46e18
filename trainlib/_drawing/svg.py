"""Curves as SVG, which needs no library and no file. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from trainlib._training.summary import MetricCurve

__all__ = ["svg_of"]

_WIDTH, _HEIGHT, _MARGIN = 340, 150, 24
# Both can be read on a light and on a dark page.
_INK, _LINE = "#8b8b8b", "#3b82f6"
_MOST_POINTS = 300

Point = tuple[int, float]


def svg_of(curves: Sequence[MetricCurve], *, resumed_at: Sequence[int] = ()) -> str:
    """Curves of one metric. The first one stands out, and lies on top of the others.

    Args:
        curves: At least one.
        resumed_at: After which iterations further attempts went on. They are marked.
    """
    shown = curves[0]
    first = min(curve.points[0][0] for curve in curves)
    last = max(curve.last[0] for curve in curves)
    low, high = min(curve.lowest[1] for curve in curves), max(curve.highest[1] for curve in curves)
    across, up = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN

    def place(point: Point) -> str:
        x = _MARGIN + across * ((point[0] - first) / (last - first) if last > first else 0.5)
        y = _MARGIN + up * (1 - ((point[1] - low) / (high - low) if high > low else 0.5))
        return f"{x:.1f},{y:.1f}"

    def line(curve: MetricCurve, style: str) -> str:
        return f'<polyline points="{" ".join(map(place, _thinned(curve.points)))}" fill="none" {style}/>'

    right, bottom = _WIDTH - _MARGIN, _HEIGHT - _MARGIN
    end_x, end_y = place(shown.last).split(",")
    marks = "".join(_mark(place((at, low)).split(",")[0], number) for number, at in _inside(resumed_at, first, last))
    on_top = line(shown, f'stroke="{_LINE}" stroke-width="1.8"')
    others = "".join(line(curve, f'stroke="{_INK}" stroke-width="0.9" opacity="0.6"') for curve in reversed(curves[1:]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="11" '
        f'fill="{_INK}"><text x="{_MARGIN}" y="14" font-weight="bold">{escape(shown.name)}</text>'
        f'<text x="{right}" y="14" text-anchor="end">{low:.4g} to {high:.4g}</text>'
        f'<path d="M{_MARGIN},{_MARGIN}V{bottom}H{right}" fill="none" stroke="{_INK}" stroke-width="0.7"/>'
        f'<text x="{_MARGIN}" y="{_HEIGHT - 8}">{first}</text>'
        f'<text x="{right}" y="{_HEIGHT - 8}" text-anchor="end">iteration {last}</text>'
        f"{marks}{others}{on_top}"
        f'<circle cx="{end_x}" cy="{end_y}" r="2.5" fill="{_LINE}"/></svg>'
    )


def _inside(resumed_at: Sequence[int], first: int, last: int) -> list[tuple[int, int]]:
    """The numbers of further attempts, and where they are on the axis; one that began again is at its start."""
    return [(number, min(max(at, first), last)) for number, at in enumerate(resumed_at, start=2)]


def _mark(x: str, number: int) -> str:
    top, bottom = _MARGIN, _HEIGHT - _MARGIN
    return (
        f'<path d="M{x},{top}V{bottom}" stroke="{_INK}" stroke-width="0.9" stroke-dasharray="3 3">'
        f"<title>attempt {number}</title></path>"
    )


def _thinned(points: Sequence[Point]) -> list[Point]:
    """As many points as can be told apart, evenly spread, with the first and the last one."""
    if len(points) <= _MOST_POINTS:
        return list(points)
    return [points[round(index * (len(points) - 1) / (_MOST_POINTS - 1))] for index in range(_MOST_POINTS)]
