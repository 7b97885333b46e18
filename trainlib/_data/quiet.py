"""Ray Data, without its progress bars and plans: a training has a line of its own."""

from __future__ import annotations

import logging
import os

import ray.data


def quiet() -> None:
    """Let this process's pipelines print nothing: their errors are raised, and say what is wrong."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # a pipeline's other tasks may fail for the same reason
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
