"""A sweep as both UIs have it."""

from __future__ import annotations

from uuid import UUID


def children(registry, parent_id):
    """The MLflow runs of its trials, by number."""
    experiment = registry.get_run(parent_id).info.experiment_id
    runs = registry.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{parent_id}'")
    return sorted(runs, key=lambda run: int(run.data.tags["trainlib.trial"]))


def task_runs(flow_run_id):
    """Its Prefect task runs."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    with get_client(sync_client=True) as client:
        chosen = FlowRunFilter(id=FlowRunFilterId(any_=[UUID(flow_run_id)]))
        return client.read_task_runs(flow_run_filter=chosen)


def artifacts_of(flow_run_id):
    """What Prefect shows of a sweep, by key."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    mine = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[UUID(flow_run_id)]))
    with get_client(sync_client=True) as client:
        return {artifact.key: artifact.data for artifact in client.read_artifacts(artifact_filter=mine)}
