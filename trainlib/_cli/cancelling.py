"""Ending a training that another process runs: ``trainlib cancel``."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

from trainlib._cli.registry import client
from trainlib._cli.services import prefect_api, prefect_login
from trainlib._registry import tags
from trainlib._registry.finding import find_run
from trainlib._registry.listing import RunState
from trainlib._registry.ownership import Occupancy, Owner, occupancy
from trainlib.errors import RunNotReachableError

if TYPE_CHECKING:
    from mlflow.entities import Run

__all__ = ["Cancelled", "Way", "cancel"]

_POLL_S = 0.2


class Way(StrEnum):
    """How a training was asked to end."""

    PREFECT = "prefect"
    """Its flow run was made Cancelling."""
    SIGNAL = "signal"
    """Its process, on this machine, got a SIGTERM."""


@dataclass(frozen=True)
class Cancelled:
    """A training that was asked to end, and how far it came."""

    id: str
    name: str
    by: Way
    flow_run_id: str | None
    status: RunState
    """How it is now: ``killed`` if it has ended, ``running`` if it has not yet."""
    seconds: float
    """How long that took."""


def cancel(run: str, timeout_s: float) -> Cancelled:
    """End a training or a sweep, as Cancel in the Prefect UI does, and wait until it has ended.

    Args:
        run: Its id or name.
        timeout_s: How long to wait at most.

    Raises:
        RunNotFoundError: there is no such run.
        RunNotReachableError: it does not run, or cannot be reached from here.
    """
    with client() as registry:
        found = find_run(registry, run)
        _require_cancellable(found)
        started = time.monotonic()
        by = Way.PREFECT
        if (why_not := _cancel_flow_run(found)) is not None:
            # Asking takes a while. A process whose training has ended meanwhile has other things to do.
            found = registry.get_run(found.info.run_id)
            _require_cancellable(found)
            by = _signal(found, why_not)
        while True:
            now = registry.get_run(found.info.run_id)
            is_over = occupancy(now) in (Occupancy.FREE, Occupancy.GONE)
            if is_over or time.monotonic() - started > timeout_s:
                break
            time.sleep(_POLL_S)
        # A process first ends its run, and then lets it go. MLflow reads these two one after the other.
        now = registry.get_run(found.info.run_id)
    return Cancelled(
        id=now.info.run_id,
        name=now.info.run_name,
        by=by,
        flow_run_id=now.data.tags.get(tags.FLOW_RUN_ID),
        status=RunState.of(now),
        seconds=time.monotonic() - started,
    )


def _require_cancellable(run: Run) -> None:
    name = f"{run.info.run_name!r} (MLflow run {run.info.run_id})"
    if (sweep := run.data.tags.get(tags.MLFLOW_PARENT)) is not None:
        raise RunNotReachableError(f"{name} is a trial. Cancel its sweep: trainlib cancel {sweep}")
    match occupancy(run):
        case Occupancy.FREE:
            raise RunNotReachableError(f"{name} does not run: it is {RunState.of(run)}")
        case Occupancy.GONE:
            raise RunNotReachableError(f"{name} does not run: its process ended without a word")


def _signal(run: Run, why_not: str) -> Way:
    """End the process that runs a training; ``why_not`` says why Prefect cannot."""
    driver = Owner.of(run).driver
    assert driver is not None, "otherwise nobody runs it"
    if not driver.is_here:
        raise RunNotReachableError(
            f"{run.info.run_name!r} is run by process {driver.pid} on {driver.host}, and {why_not}. Set PREFECT_API_URL to the "
            "server that it uses, or call `trainlib cancel` on that machine"
        )
    os.kill(driver.pid, signal.SIGTERM)
    return Way.SIGNAL


def _cancel_flow_run(run: Run) -> str | None:
    """Make the flow run of a training Cancelling. Gives None, or why that is not possible."""
    api, flow_run_id = prefect_api(), run.data.tags.get(tags.FLOW_RUN_ID)
    if api is None or flow_run_id is None:
        return "no Prefect server is configured here"
    import httpx
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.settings import (
        PREFECT_API_AUTH_STRING,
        PREFECT_API_URL,
        PREFECT_CLIENT_MAX_RETRIES,
        temporary_settings,
    )
    from prefect.states import Cancelling

    login = prefect_login()
    settings = {PREFECT_API_URL: api, PREFECT_CLIENT_MAX_RETRIES: 0}
    with (
        temporary_settings({**settings, **({PREFECT_API_AUTH_STRING: login} if login else {})}),
        get_client(sync_client=True) as prefect,
    ):
        try:
            state = prefect.read_flow_run(UUID(flow_run_id)).state
            if state is not None and state.is_final():  # the server has missed that it goes on
                return f"its flow run is {state.name} on the Prefect server at {api}"
            prefect.set_flow_run_state(UUID(flow_run_id), Cancelling())
        except ObjectNotFound:
            return f"the Prefect server at {api} does not know it"
        except httpx.HTTPError as error:
            return f"the Prefect server at {api} does not answer ({type(error).__name__})"
    return None
