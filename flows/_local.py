"""Running a flow from a script: everything started side by side, errors without foreign frames."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TypeVar

import httpx
from prefect.context import FlowRunContext
from prefect.exceptions import Abort, CancelledRun, TerminationSignal

from trainlib._execution import cluster, warm_up
from trainlib._execution.backend import BackendConfig
from trainlib._execution.pool.own_pool import pool
from trainlib._registry.client import connect_to_begin, require_answer
from trainlib._registry.store import TrackingStore, current_store
from trainlib.config import ScalingConfig
from trainlib.errors import TrainlibError
from trainlib.flows import _embedded as embedded
from trainlib.flows._ending import Ending, kept_in

# What Prefect logs for people who watch a flow. Here the terminal shows the training itself, and errors are raised.
_PREFECT_LOGGERS = ("prefect.flow_runs", "prefect.task_runs")

R = TypeVar("R")


def run(flow: Callable[[], R], scaling: ScalingConfig, backend: BackendConfig, store: TrackingStore) -> R:
    """Call a flow that trains on such a gang, and records in that store.

    Raises:
        ConnectionFailedError: Ray, Prefect or MLflow does not answer; nothing has been started then.
        TrainingCancelledError: somebody has cancelled the flow run in Prefect.
    """
    failure: BaseException
    ending = Ending()
    with _terminates(), _shows_trainings():
        try:
            cluster.require_answer()
            require_answer(store.uri)
            embedded.start()
            # Each takes seconds, most of them in another process: so they start side by side.
            warm_up.start(scaling, backend)
            if store != current_store():
                warm_up.wait()  # or a Ray that starts now would hand this store's token on to the next training's workers
            # All the while: a variable that is taken out of the environment just when Prefect reads it for a training beside
            # this one would end that one with a KeyError.
            with store.in_use():
                connect_to_begin(store)
                embedded.wait()
                with kept_in(ending):
                    return flow()
        except (TerminationSignal, KeyboardInterrupt, TrainlibError) as error:
            failure = error
        except (httpx.HTTPError, CancelledRun, Abort):  # how it ended for Prefect; the caller wants what the flow gave
            if not ending.is_known:
                raise
            if ending.error is None:
                return ending.value  # type: ignore[no-any-return]
            failure = ending.error
        finally:
            # Nothing may go on behind a call that is over: the user may shut Ray down next, and a thread of ours that still
            # used it, or started another one, would take the whole process with it.
            warm_up.wait()
            if cluster.in_task():
                pool.clear()  # Ray keeps the process of a task that is over, and idle workers would stay with it
    if (
        isinstance(failure, TerminationSignal) and FlowRunContext.get() is None
    ):  # a flow of the user's knows it as it is
        failure = SystemExit(128 + signal.SIGTERM)
    # Raised here, so that the frames of Prefect's engine are not part of it.
    raise failure.with_traceback(None) from failure.__cause__


@contextmanager
def _terminates() -> Iterator[None]:
    """Let SIGTERM end a training as Ctrl-C does, cleanly, where nobody else has a say about it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def terminate(number: int, frame: FrameType | None) -> None:
        raise TerminationSignal(signal=number)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


# Whether the terminal shows trainings themselves. Otherwise Prefect's log does: not both.
shows_trainings: ContextVar[bool] = ContextVar("shows_trainings", default=False)


@contextmanager
def _shows_trainings() -> Iterator[None]:
    """Keep Prefect's remarks out of the terminal, for the trainings' own; its server still gets them."""
    token = shows_trainings.set(True)
    loggers = [logging.getLogger(name) for name in _PREFECT_LOGGERS]
    before = [logger.propagate for logger in loggers]
    for logger in loggers:
        logger.propagate = False
    try:
        yield
    finally:
        shows_trainings.reset(token)
        for logger, propagate in zip(loggers, before, strict=True):
            logger.propagate = propagate
