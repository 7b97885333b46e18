"""What Ray Data writes to the log while it reads."""

from __future__ import annotations

import logging

__all__ = ["without_progress"]


def without_progress() -> None:
    """Keep Ray Data from logging its progress where it has no terminal for bars: that is a page every few seconds.

    Called when trainlib is imported, since datasets are made before a training. Ray need not be imported for it. Bars in a
    terminal stay until a training, which has its own progress line.
    """
    logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)
