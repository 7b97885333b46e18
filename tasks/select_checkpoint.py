"""The selection task: the best checkpoint by a metric, from the registry."""

from __future__ import annotations

from typing import Literal

from prefect import task
from prefect.cache_policies import NO_CACHE

from trainlib._registry.models import Selection, select

__all__ = ["select_checkpoint"]


@task(name="select_checkpoint", task_run_name="select · {mode} {metric}", cache_policy=NO_CACHE)
def select_checkpoint(run_ids: list[str], metric: str, mode: Literal["max", "min"] = "max") -> Selection:
    """The best committed checkpoint of some trainings.

    Args:
        run_ids: The MLflow runs to choose from.
        metric: A metric that their checkpoints were reported with.
        mode: Whether a high or a low value is better.
    """
    return select(run_ids, metric, mode)
