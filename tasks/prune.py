"""The pruning task: checkpoints that a policy gives up are listed, or deleted."""

from __future__ import annotations

from functools import partial

from prefect import task
from prefect.artifacts import create_table_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from trainlib._registry.logged_models import checkpoint_name
from trainlib._registry.prune_policy import Policy
from trainlib._registry.pruning import Expendable, PruneResult
from trainlib._registry.pruning import prune as prune_registry
from trainlib.tasks._background import show

__all__ = ["prune"]

_MOST_ROWS = 1000


@task(name="prune", task_run_name="prune · keep {policy.keep}", cache_policy=NO_CACHE)
def prune(policy: Policy, dry_run: bool = True) -> PruneResult:
    """List the checkpoints that a policy gives up, and delete them if it is no dry run.

    Args:
        policy: Which checkpoints stay.
        dry_run: Whether they are only listed.
    """
    logger = get_run_logger()
    result = prune_registry(policy, dry_run=dry_run, say=logger.info)
    logger.info(result.summary)
    rows = [_row(each) for each in result.deleted[:_MOST_ROWS]]
    show(partial(create_table_artifact, rows, key="retention", description=result.summary))
    return result


def _row(each: Expendable) -> dict[str, str]:
    return {
        "run": each.run_name,
        "checkpoint": checkpoint_name(each.checkpoint.index) + (" (incomplete)" if each.is_leftover else ""),
        "saved": f"{each.saved:%Y-%m-%d %H:%M}",
        "MB": f"{each.size / 1e6:.2f}",
        "metrics": ", ".join(f"{name}={value:.4g}" for name, value in list(each.checkpoint.metrics.items())[:4]),
        "id": each.checkpoint.model_id,
        "location": each.checkpoint.location,
    }
