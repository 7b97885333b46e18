"""The end of a flow run whose Prefect server may be gone: what it gave is not lost with the server.

Prefect's engine tells the server how a flow run ended before it returns its value. If nobody answers, it raises an error of
its HTTP client instead. So what a flow gave is kept here first, and its caller gets that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prefect.client.schemas.objects import StateType
from prefect.runtime import flow_run
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)
from prefect.states import Cancelled

from trainlib.errors import TrainingCancelledError
from trainlib.flows._cancelling import watched
from trainlib.flows._undelivered import keep_state
from trainlib.tasks._prefect_server import wait_until_it_answers

__all__ = ["Ending", "kept_in", "outliving_prefect"]

# How long the end of a flow run waits for a server that does not answer.
WAIT_S = 30.0
# Prefect's client tries for more than a minute by default, and gives each try a minute.
_TRIES = {PREFECT_CLIENT_MAX_RETRIES: 3, PREFECT_API_REQUEST_TIMEOUT: 10.0}

# Prefect's threads that send logs and events complain in the terminal about each that a server did not take.
_BACKGROUND_LOGGERS = ("prefect.events.clients", "prefect._internal.concurrency")

_log = logging.getLogger("trainlib")

R = TypeVar("R")


@dataclass
class Ending:
    """How a flow ended, as far as it is known."""

    is_known: bool = False
    value: Any = None
    error: BaseException | None = None
    settings: ExitStack = field(default_factory=ExitStack)
    """What holds for Prefect's client until the caller has what the flow gave."""
    server_is_gone: bool = False
    """Whether the server did not answer at the end."""


_current: ContextVar[Ending | None] = ContextVar("ending", default=None)


@contextmanager
def kept_in(ending: Ending) -> Iterator[None]:
    """For whoever calls a flow: within the block, what the flow gives is kept in ``ending``."""
    for name in _BACKGROUND_LOGGERS:
        logging.getLogger(name).addFilter(_drop_complaints)  # one of them goes by no level
    with ending.settings:
        ending.settings.enter_context(temporary_settings(_TRIES))
        ending.settings.enter_context(_undelivered_logs_are_dropped(ending))
        token = _current.set(ending)
        try:
            yield
        finally:
            _current.reset(token)


def _drop_complaints(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.CRITICAL


@contextmanager
def _undelivered_logs_are_dropped(ending: Ending) -> Iterator[None]:
    """Prefect's log handler has no other switch for what it prints about lines that a server did not take.

    It goes on printing until the process ends, so that a server that is gone stays without complaints.
    """
    before, logging.raiseExceptions = logging.raiseExceptions, False
    try:
        yield
    finally:
        logging.raiseExceptions = before and not ending.server_is_gone


def outliving_prefect(work: Callable[[], R]) -> R:
    """Do the work of a flow, end it when it is cancelled in Prefect, and keep what it gives.

    A server that does not answer at the end is waited for a while.
    """
    with watched() as watch:
        try:
            value = work()
        except Exception as error:
            _end(StateType.FAILED, error=error)
            raise
        except BaseException as error:
            if not watch.has_interrupted:
                _end(StateType.CRASHED, error=error)
                raise
            return _cancelled()
    if _end(StateType.COMPLETED, value=value) and watch.is_too_late():
        return _cancelled_too_late()
    return value


def _cancelled() -> Any:
    """Ends the flow run as Cancelled; whoever called it gets an error."""
    message = (
        f"The flow run {flow_run.name!r} was cancelled in Prefect. If it is a training or sweep with a name, the next one "
        "of that name continues it."
    )
    _end(StateType.CANCELLED, error=TrainingCancelledError(message))
    return Cancelled(message=message)


def _cancelled_too_late() -> Any:
    """Ends the flow run as Cancelled, since Prefect accepts nothing else any more; ``fit()`` still returns its result."""
    return Cancelled(message="It was cancelled when it had finished.")


def _end(state: StateType, *, value: Any = None, error: BaseException | None = None) -> bool:
    """Keep how the flow ended. Returns whether the server answers; somebody who ends it does not want to wait for that."""
    ending = _current.get()
    if ending is not None:
        ending.is_known, ending.value, ending.error = True, value, error
    is_awaited = state in (StateType.COMPLETED, StateType.FAILED)
    if wait_until_it_answers(WAIT_S if is_awaited else 0.0):
        return True
    url = str(PREFECT_API_URL.value())
    keep_state(url, str(flow_run.id), state)
    _log.warning(
        "The Prefect server at %s does not answer, so it does not show how this run ended. The next run that finds it will "
        "tell it.",
        url,
    )
    if ending is not None:
        ending.server_is_gone = True
        # Or the engine would try for long.
        ending.settings.enter_context(temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}))
    return False
