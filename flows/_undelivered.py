"""How flow runs ended whose Prefect server was gone by then: told to the server when it is back."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import State, StateType
from prefect.exceptions import ObjectNotFound

from trainlib import _storage as storage

__all__ = ["deliver_states", "keep_state"]

_log = logging.getLogger("trainlib")


def keep_state(api: str, flow_run_id: str, state: StateType) -> None:
    """Keep how a flow run ended, for a server that does not answer now."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{flow_run_id}.part"
    part.write_text(json.dumps({"api": api, "state": state.value}))
    part.rename(part.with_suffix(".json"))  # never half a file: each later process reads it


def deliver_states(api: str) -> None:
    """Tell a server that answers how earlier flow runs ended, in the background.

    It is told of all those that it knows. The address does not say which they are: the embedded servers of one home have one
    database, and each another port.
    """
    if any(_folder().glob("*.json")):
        threading.Thread(target=_deliver, args=(api,), name="undelivered-states", daemon=True).start()


def _deliver(api: str) -> None:
    for file in list(_folder().glob("*.json")):
        try:
            kept = json.loads(file.read_text())
        except FileNotFoundError:  # another process has just delivered it
            continue
        try:
            with get_client(sync_client=True) as client:
                run = client.read_flow_run(UUID(file.stem))
                if run.state is None or not run.state.is_final():
                    ended: State[None] = State(
                        type=_state_in(kept), message="Told later: the server did not answer when it ended."
                    )
                    _end_tasks(client, run.id, ended)
                    client.set_flow_run_state(run.id, ended, force=True)
        except ObjectNotFound:
            if kept["api"] != api:
                continue  # another server's
            # This one has a new database: there is nothing to tell it.
        except httpx.HTTPError as error:
            _log.debug("could not tell Prefect how flow run %s ended: %s", file.stem, error)
            return
        file.unlink(missing_ok=True)


def _end_tasks(client: SyncPrefectClient, flow_run_id: UUID, ended: State[None]) -> None:
    """What a server has not heard of the end of tasks, it has lost with their events: they ended as the flow run did."""
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id]))
    for task_run in client.read_task_runs(flow_run_filter=of_run):
        if task_run.state is None or not task_run.state.is_final():
            client.set_task_run_state(task_run.id, ended, force=True)


def _state_in(kept: dict[str, Any]) -> StateType:
    """The state in a file. An older trainlib only wrote whether the run had failed."""
    if "state" in kept:
        return StateType(kept["state"])
    return StateType.FAILED if kept["failed"] else StateType.COMPLETED


def _folder() -> Path:
    return storage.home() / "undelivered"
