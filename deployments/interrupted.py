"""Runs that had begun when the machine was switched off, or when the platform was killed.

Automations alone would not mark them as crashed: after a restart, Prefect forgets for whom it was waiting more than a minute
ago.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateName,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.events.filters import EventFilter, EventNameFilter, EventOrder, EventResourceFilter
from prefect.states import Crashed

from trainlib.deployments.automations import HEARTBEAT
from trainlib.deployments.listed import flow_names

__all__ = ["last_heartbeat", "mark_interrupted_runs", "mark_silent_runs"]

_BEGUN = FlowRunFilter(
    state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.PENDING, StateType.RUNNING]))
)
# The process of a run that is Paused waits for an answer. One that is Suspended has none.
_WAITING = FlowRunFilter(state=FlowRunFilterState(name=FlowRunFilterStateName(any_=["Paused"])))


def mark_interrupted_runs() -> None:
    """Mark runs as crashed whose processes ended with the platform before this one. To be called before any is started."""
    with get_client(sync_client=True) as client:
        # Those with a work pool run elsewhere, and may go on.
        served = [each.id for each in client.read_deployments() if each.work_pool_name is None]
        if not served:
            return
        of_ours = DeploymentFilter(id=DeploymentFilterId(any_=served))
        for which in (_BEGUN, _WAITING):
            for run in client.read_flow_runs(flow_run_filter=which, deployment_filter=of_ours):
                client.set_flow_run_state(run.id, Crashed(message="The platform that ran it has ended."), force=True)


def mark_silent_runs(since: datetime) -> None:
    """Mark runs of scripts as crashed that have not told since then that they live, and did so before.

    Args:
        since: When the platform was up. A script that lives has told so more than once, a while later.
    """
    of_ours = FlowFilter(name=FlowFilterName(any_=flow_names()))
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=_BEGUN, flow_filter=of_ours):
            last = last_heartbeat(client, run.id)
            if run.deployment_id is None and last is not None and last < since:
                message = f"Its process is gone: it last told on {last:%Y-%m-%d at %H:%M:%S} UTC that it lives."
                client.set_flow_run_state(run.id, Crashed(message=message), force=True)


def last_heartbeat(client: SyncPrefectClient, flow_run_id: UUID) -> datetime | None:
    """When a run last told that it lives; None if it never did."""
    wanted = EventFilter(
        event=EventNameFilter(name=[HEARTBEAT]),
        resource=EventResourceFilter(id=[f"prefect.flow-run.{flow_run_id}"]),
        order=EventOrder.DESC,
    )
    newest = client.read_events(wanted, limit=1).events
    return newest[0].occurred if newest else None
