"""Switches off Ray Data's progress bars and plans. A training has its own progress line."""

from __future__ import annotations

import logging
import os

import ray.data


def quiet() -> None:
    """Keep the pipelines of this process from printing. Their errors are raised anyway."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    os.environ.setdefault(
        "RAY_IGNORE_UNHANDLED_ERRORS", "1"
    )  # other tasks of the pipeline often fail for the same reason
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
