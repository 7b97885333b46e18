"""Small charts in Markdown, as images that need no file: both of Prefect's UIs show them. Pure."""

from __future__ import annotations

import base64

from trainlib._drawing.svg import svg_of
from trainlib._training.summary import MetricCurve

__all__ = ["chart"]


def chart(curve: MetricCurve) -> str:
    """A curve as an image in Markdown."""
    encoded = base64.b64encode(svg_of([curve]).encode()).decode()
    return f"![{curve.name}](data:image/svg+xml;base64,{encoded})"
