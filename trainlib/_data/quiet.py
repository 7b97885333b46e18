"""Switches off Ray Data's progress bars and plans. A training has its own progress line."""

from __future__ import annotations

import logging
import os

import ray.data


def quiet() -> None:
    """Keep the pipelines of this process from printing. Their errors are raised anyway."""
    _quiet_context(ray.data.DataContext.get_current())
    os.environ.setdefault(
        "RAY_IGNORE_UNHANDLED_ERRORS", "1"
    )  # other tasks of the pipeline often fail for the same reason
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)


def quieted(dataset: ray.data.Dataset) -> ray.data.Dataset:
    """A copy of a dataset that prints nothing. One that was made before :func:`quiet` was called has settings of its own."""
    dataset = dataset.copy(dataset, _deep_copy=True)  # the user's own dataset keeps its settings
    _quiet_context(dataset.context)
    return dataset


def _quiet_context(context: ray.data.DataContext) -> None:
    context.enable_progress_bars = False
    context.print_on_execution_start = False
