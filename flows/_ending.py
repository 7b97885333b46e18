"""The end of a flow run whose Prefect server may be gone: what it gave is not lost with the server.

Prefect's engine tells the server how a flow run ended before it returns its value. If nobody answers, it raises an error of
its HTTP client instead, after a long time. So what a flow gave is kept here first, and its caller gets that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar

from prefect.client.schemas.objects import StateType
from prefect.exceptions import Abort, Pause
from prefect.runtime import flow_run
from prefect.settings import (
    PREFECT_API_REQUEST_TIMEOUT,
    PREFECT_API_URL,
    PREFECT_CLIENT_MAX_RETRIES,
    temporary_settings,
)
from prefect.states import Cancelled

from trainlib._execution.waiting import SuspendedInThreadError, cancelled_by
from trainlib.errors import TrainingCancelledError
from trainlib.flows._cancelling import CancelWatch
from trainlib.flows._suspending import FlowInterruption, pause_of_suspended
from trainlib.flows._undelivered import keep_state
from trainlib.flows._waiting_lines import bounded_queues, give_up_at_exit
from trainlib.tasks._prefect_server import wait_until_it_answers

__all__ = ["Ending", "kept_in", "outliving_prefect"]

# How long the end of a flow run waits for a server that does not answer.
WAIT_S = 30.0
# Prefect's client tries for more than a minute by default, and gives each try a minute.
_TRIES = {PREFECT_CLIENT_MAX_RETRIES: 3, PREFECT_API_REQUEST_TIMEOUT: 10.0}

# Prefect's threads that send logs and events complain in the terminal about each that a server did not take.
_BACKGROUND_LOGGERS = ("prefect.events.clients", "prefect._internal.concurrency", "EventsWorker")

_log = logging.getLogger("trainlib")

R = TypeVar("R")


@dataclass
class Ending:
    """How a flow ended, as far as it is known."""

    is_known: bool = False
    value: Any = None
    error: BaseException | None = None
    server_is_gone: bool = False
    """Whether the server did not answer at the end."""


_current: ContextVar[Ending | None] = ContextVar("ending", default=None)


@contextmanager
def kept_in(ending: Ending) -> Iterator[None]:
    """For whoever calls a flow: within the block, what the flow gives is kept in ``ending``."""
    for name in _BACKGROUND_LOGGERS:
        logging.getLogger(name).addFilter(_drop_complaints)  # one of them goes by no level
    with temporary_settings(_TRIES), _undelivered_logs_are_dropped(ending):
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
    """Do the work of a flow, and keep what it gives. It is interrupted when somebody cancels or suspends the flow run in
    Prefect, or one that it was called in.

    A server that does not answer at the end is waited for a while.
    """
    interruption = FlowInterruption()
    watch = CancelWatch(interruption)
    value: Any = None
    error: BaseException | None = None
    try:
        with bounded_queues(), cancelled_by(interruption), watch.interrupting():
            value = work()
    except BaseException as raised:
        error = raised
    is_ended_by_somebody = not isinstance(error, (Exception, SuspendedInThreadError, Pause, NoneType))
    if interruption.is_set() and interruption.suspends and not is_ended_by_somebody:
        # Also if it was over just then: Prefect's engine accepts no other end any more.
        raise pause_of_suspended() from None
    if error is not None and watch.cancelled is not None:
        error = _cancelled_error(watch.cancelled).with_traceback(error.__traceback__)
        watch.show_callers_as_cancelled()
    if _end(value, error) and watch.is_cancelled():
        # Prefect accepts no other state any more. If it was too late, whoever called fit() still gets what came of it.
        message = str(error) if isinstance(error, TrainingCancelledError) else "It was over when it was cancelled."
        return Cancelled(message=message)  # type: ignore[return-value]
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def _cancelled_error(cancelled: str) -> TrainingCancelledError:
    what = repr(flow_run.name)
    if cancelled != flow_run.name:
        what = f"{cancelled!r}, in which {what} was called,"
    return TrainingCancelledError(
        f"The flow run {what} was cancelled in Prefect. If it is a training or sweep with a name, the next one of that name "
        "continues it."
    )


def _end(value: Any, error: BaseException | None) -> bool:
    """Keep what a flow gave, and see whether the server answers.

    Raises:
        Abort: it does not, and whoever called the flow has what it gave. Prefect's engine then ends without the server.
    """
    ending = _current.get()
    if ending is not None:
        ending.is_known, ending.value, ending.error = True, value, error
    state = _state_after(error)
    # Whoever ends a flow does not want to wait.
    if wait_until_it_answers(WAIT_S if state in (StateType.COMPLETED, StateType.FAILED) else 0.0):
        return True
    url = str(PREFECT_API_URL.value())
    keep_state(url, str(flow_run.id), state)
    give_up_at_exit()
    _log.warning(
        "The Prefect server at %s does not answer, so it does not show how this run ended. The next run that finds it will "
        "tell it.",
        url,
    )
    if ending is not None:
        ending.server_is_gone = True
        raise Abort("The server does not answer.")  # or the engine would try to tell it, for long
    return False


def _state_after(error: BaseException | None) -> StateType:
    if error is None:
        return StateType.COMPLETED
    if isinstance(error, TrainingCancelledError):
        return StateType.CANCELLED
    return StateType.FAILED if isinstance(error, Exception) else StateType.CRASHED
