"""What becomes of a flow run whose machine was switched off: it is marked as crashed, and run again where its tags say so."""

from __future__ import annotations

from datetime import timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

from trainlib.deployments.listed import flow_names

__all__ = ["HEARTBEAT", "RESTART_TAG", "SILENCE", "crash_detection", "ensure_automations", "restart"]

# A run that has told nothing for so long has crashed. It tells every 30 s that it lives.
SILENCE = timedelta(seconds=90)
# On a deployment or a flow run: run it again after a crash.
RESTART_TAG = "restart-after-crash"
# So often, at most: a run that takes its machine down each time ends here.
MOST_RESTARTS = 3

_RUNS = ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"})
# Other flows of the user's may tell less often that they live: Prefect's default is every three minutes.
_OF_OUR_FLOWS = ResourceSpecification({"prefect.resource.role": "flow", "prefect.resource.name": flow_names()})
HEARTBEAT = "prefect.flow-run.heartbeat"
"""The event by which a run tells that it lives."""
# After these, it is silent for a good reason. The next heartbeat begins the watch again.
_REASONS_FOR_SILENCE = (
    "Completed",
    "Failed",
    "Cancelled",
    "Crashed",
    "Paused",
    "Suspended",
    "AwaitingRetry",
    "Scheduled",
)


def crash_detection(silence: timedelta = SILENCE) -> AutomationCore:
    """Marks a run as crashed that has not told for a while that it lives."""
    return AutomationCore(
        name="trainlib: runs that are silent have crashed",
        description="A run tells every 30 s that it lives. If its process or its machine is gone, it is shown as crashed.",
        trigger=EventTrigger(
            after={HEARTBEAT},
            expect={HEARTBEAT, *(f"prefect.flow-run.{state}" for state in _REASONS_FOR_SILENCE)},
            match=_RUNS,
            match_related=_OF_OUR_FLOWS,
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=silence,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                message=f"It has told nothing for {silence.total_seconds():g} s: its process or its machine is gone.",
            )
        ],
    )


def restart() -> AutomationCore:
    """Runs a crashed run again, with the same parameters, as Retry does in Prefect's UI."""
    return AutomationCore(
        name="trainlib: crashed runs are run again",
        description=f"Runs with the tag {RESTART_TAG} are run again after a crash, up to {MOST_RESTARTS} times. A training "
        "goes on from its newest checkpoint.",
        trigger=EventTrigger(
            expect={"prefect.flow-run.Crashed"},
            match=ResourceSpecification(
                {**_RUNS.root, "prefect.run-count": [str(count) for count in range(1, MOST_RESTARTS + 1)]}
            ),
            match_related=ResourceSpecification(
                {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{RESTART_TAG}"}
            ),
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
            within=timedelta(0),
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.SCHEDULED, name="AwaitingRetry", message="It has crashed, and is run again.", force=True
            )
        ],
    )


def ensure_automations(silence: timedelta = SILENCE) -> None:
    """Create both automations, or bring them up to date. What is as it should be is left alone, with what it has seen."""
    with get_client(sync_client=True) as client:
        for wanted in (crash_detection(silence), restart()):
            found = client.read_automations_by_name(wanted.name)
            if not found:
                client.create_automation(wanted)
            elif not _is_same(found[0], wanted):
                client.update_automation(found[0].id, wanted)


def _is_same(found: Automation, wanted: AutomationCore) -> bool:
    fields = ("description", "actions")
    triggers = [each.trigger.model_dump(exclude={"id"}) for each in (found, wanted)]
    return triggers[0] == triggers[1] and all(getattr(found, name) == getattr(wanted, name) for name in fields)


if __name__ == "__main__":  # for a Prefect server that `trainlib up` does not run
    ensure_automations()
