"""The flow that prunes checkpoints by a policy."""

from __future__ import annotations

from typing import Annotated, Literal

from prefect.runtime import flow_run
from pydantic import Field

from trainlib._bounds import LARGEST_COUNT, LONGEST_DAYS
from trainlib._registry.prune_policy import Policy
from trainlib._registry.pruning import PruneResult
from trainlib.errors import RunNotFoundError
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.tasks.prune import prune

__all__ = ["retention"]


def _flow_run_name() -> str:
    given = flow_run.parameters
    where = given.get("experiment") or "all experiments"
    return f"retention · {where}" + (" · dry run" if given.get("dry_run", True) else "")


@notifies
@form_flow(name="retention", flow_run_name=_flow_run_name)
def retention(
    dry_run: bool = True,
    keep: Annotated[int, Field(ge=0, le=LARGEST_COUNT, strict=True)] = 3,
    metric: str = "",
    mode: Literal["max", "min"] = "max",
    older_than_days: Annotated[float, Field(ge=0, le=LONGEST_DAYS)] = 30.0,
    experiment: str = "",
) -> PruneResult:
    """Delete old checkpoints. A dry run, which is the default, only lists what would be deleted, with sizes.

    Some stay whatever is filled in: those of trainings that run, the newest of a run that can be resumed, those that a version of
    a registered model refers to, and those that an unfinished training was forked from. What processes that were killed have left
    unfinished is deleted as well.

    Args:
        dry_run: Only list what would be deleted, in a table.
        keep: How many checkpoints of each run stay.
        metric: The metric by which the best ones stay. Empty: the newest stay.
        mode: Whether a high or a low value of the metric is better.
        older_than_days: Checkpoints that are younger stay.
        experiment: Only checkpoints of this MLflow experiment. Empty: of all.
    """
    policy = Policy(
        keep=keep, metric=metric or None, mode=mode, older_than_days=older_than_days, experiment=experiment or None
    )
    return outliving_prefect(lambda: _prune(policy, dry_run))


def _prune(policy: Policy, dry_run: bool) -> PruneResult:
    try:
        return prune(policy, dry_run)
    except RunNotFoundError as error:
        raise RunNotFoundError(f"experiment: {error}") from error
