"""Posts the end of a run to a webhook or to Slack, through a notification block of Prefect. Off unless a setting names one.

The address, which is often a secret, is in the block, on the Prefect server. The setting has only its name.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.sorting import ArtifactSort

from trainlib._masked_text import masked_text
from trainlib.flows._embedded import flow_run_url
from trainlib.tasks._background import show
from trainlib.tasks._prefect_screen import LINK_KEY, REPORT_KEY

if TYPE_CHECKING:
    from prefect.blocks.abstract import NotificationBlock

__all__ = ["SETTING", "notifies"]

SETTING = "TRAINLIB_NOTIFY_BLOCK"
"""The environment variable with the block's name, e.g. ``slack-webhook/team``."""

# How long a run that is over waits until its end is posted.
_POST_S = 5.0
_LONGEST_MESSAGE = 500

_log = logging.getLogger("trainlib")

F = TypeVar("F", bound=Flow[..., Any])


def notifies(flow: F) -> F:
    """Let the runs of a flow post their end, if :data:`SETTING` is set. One that is suspended has not ended."""
    if os.environ.get(SETTING):
        flow.on_completion(notify)
        flow.on_failure(notify)
        flow.on_crashed(notify)
        flow.on_cancellation(notify)
    return flow


def notify(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Post the end of a flow run. Whatever goes wrong is a warning."""
    block = os.environ.get(SETTING, "")

    def post() -> None:
        try:
            with get_client(sync_client=True) as client:
                subject, body = _message(client, flow_run.id, state)
            posting: Any = _load(block).notify(body, subject)
            if inspect.isawaitable(posting):  # Prefect's own blocks have posted by now, but others may be coroutines
                asyncio.run(_awaited(posting))
        except Exception as error:  # its text may contain the address, which is a secret
            _log.warning(
                "The end of the run %r could not be posted with %s=%s: %s.", flow_run.name, SETTING, block, _why(error)
            )

    show(post, wait=_POST_S)


async def _awaited(posting: Awaitable[None]) -> None:
    await posting


def _load(name: str) -> NotificationBlock:
    from prefect.blocks import notifications  # noqa: F401  # Prefect loads only blocks of types that are imported
    from prefect.blocks.abstract import NotificationBlock
    from prefect.blocks.core import Block

    if name.count("/") != 1:
        raise _SettingError("write the block's type and its name, e.g. slack-webhook/team")
    try:
        block = Block.load(name)
    except ValueError as error:
        raise _SettingError("Prefect has no such block: create it in the Prefect UI under Blocks") from error
    if not isinstance(block, NotificationBlock):
        raise _SettingError("that block sends no notifications")
    return block


class _SettingError(Exception):
    """The setting does not name a notification block."""


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, _SettingError) else type(error).__name__


def _message(client: SyncPrefectClient, flow_run_id: UUID, state: State[Any]) -> tuple[str, str]:
    """The subject and the text: how it ended, what came of it, and where to look."""
    from trainlib.tasks._sweep_artifacts import SUMMARY_KEY  # here: a training does without it

    found = {
        each.key: each
        for each in client.read_artifacts(
            artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run_id])),
            sort=ArtifactSort.CREATED_DESC,
            limit=50,
        )[::-1]  # so that the newest of a key counts
    }
    lines = [found[key].description for key in (REPORT_KEY, SUMMARY_KEY) if key in found]
    if state.message:
        lines.append(masked_text(state.message)[:_LONGEST_MESSAGE])
    lines.append(f"Prefect: {flow_run_url(str(flow_run_id))}")
    if LINK_KEY in found:
        lines.append(f"MLflow: {_address(str(found[LINK_KEY].data))}")
    ended = "Cancelled" if state.is_cancelling() else state.name
    return f"{ended}: {client.read_flow_run(flow_run_id).name}", "\n".join(line for line in lines if line)


def _address(link: str) -> str:
    """The address in a link artifact, which is Markdown.

    Example:
        >>> _address("[MLflow: digits](http://127.0.0.1:5000/#/experiments/1)")
        'http://127.0.0.1:5000/#/experiments/1'
    """
    return link.rpartition("](")[2].removesuffix(")")
