"""The work pool that prefect.yaml names: where workers on other machines find runs."""

from __future__ import annotations

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectNotFound
from prefect.workers.process import ProcessWorker

from trainlib.deployments.listed import WORK_POOL

__all__ = ["ensure_work_pool"]


def ensure_work_pool() -> None:
    """Create it, as ``prefect work-pool create trainlib --type process`` does. One that is there stays as it is."""
    with get_client(sync_client=True) as client:
        try:
            client.read_work_pool(WORK_POOL)
        except ObjectNotFound:
            client.create_work_pool(
                WorkPoolCreate(
                    name=WORK_POOL,
                    type=ProcessWorker.type,
                    description="Runs of trainlib's flows. Each machine with a worker runs some of them.",
                    base_job_template=ProcessWorker.get_default_base_job_template(),
                )
            )
