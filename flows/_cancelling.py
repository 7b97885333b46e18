"""Cancel in the Prefect UI, for flow runs that are called from Python.

Cancel makes a flow run Cancelling, and leaves the rest to whoever executes it. A deployment's runs are executed by a runner or
worker of Prefect's, which ends their process with SIGTERM and makes them Cancelled. Nobody does that for a run that is called
from Python, so it looks after itself, and after the flow runs that it was called in.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Token
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from prefect.states import Cancelled
from prefect.utilities.engine import is_prefect_sigterm_handler_installed

from trainlib._execution.waiting import Interruption

__all__ = ["CancelWatch"]

# A run has 10 s to be Cancelled, and checkpoints that are being saved get 5 of them.
LOOK_S = 2.0


class CancelWatch:
    """Asks Prefect now and then whether the present flow run, or one that it was called in, is to be cancelled.

    It interrupts the present thread then. It does nothing for what a deployment's runner ends: the main thread of a process
    that runs a deployment.
    """

    def __init__(self, interruption: Interruption) -> None:
        """
        Args:
            interruption: Interrupts what a thread that gets no signals waits for.
        """
        self.cancelled: str | None = None
        """The name of the flow run whose cancelling has interrupted the thread."""
        self._executing = threading.current_thread()
        context = FlowRunContext.get()
        self._flow_run = context.flow_run if context is not None else None
        if self._flow_run is not None and self._is_ended_by_a_runner(self._flow_run):
            self._flow_run = None
        self._callers: list[UUID] | None = None
        self._callers_here = list(_callers_here(context))
        self._event = interruption
        self._over = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within the block, interrupt this thread as Ctrl-C does, once, when the flow run or a caller's is cancelled."""
        if self._flow_run is None:
            yield
            return
        threading.Thread(target=self._watch, name="cancel-watch", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()
            with self._lock:  # it may be about to
                pass

    def is_cancelled(self) -> bool:
        """Whether the thread was interrupted, or the flow run itself is being cancelled by now. Asks Prefect."""
        if self._flow_run is None:
            return False
        if self.cancelled is not None:
            return True
        with get_client(sync_client=True) as client:
            return self._cancelled_among(client, [self._flow_run.id]) is not None

    def show_callers_as_cancelled(self) -> None:
        """Let flow runs of this process that the present one was called in be Cancelled when they are over.

        Prefect accepts no other end of a run that is Cancelling, and leaves this one to a runner too: without one, it would be
        Cancelling for good.
        """
        for caller in self._callers_here:
            hooks = caller.flow.on_cancellation_hooks if caller.flow is not None else []
            if show_as_cancelled not in hooks:
                hooks.append(show_as_cancelled)

    def _watch(self) -> None:
        assert self._flow_run is not None
        with get_client(sync_client=True) as client:
            while not self._over.wait(LOOK_S):
                if self._callers is None:
                    self._callers = self._find_callers(client, self._flow_run)
                name = self._cancelled_among(client, [self._flow_run.id, *(self._callers or ())])
                if name is not None:
                    self._interrupt(name)
                    return

    def _find_callers(self, client: SyncPrefectClient, run: FlowRun) -> list[UUID] | None:
        """The flow runs around one, from the inside to the outside; None if Prefect cannot tell now.

        A flow that is called in another one has a task run there.
        """
        found: list[UUID] = []
        try:
            while run.parent_task_run_id is not None:
                caller = client.read_task_run(run.parent_task_run_id).flow_run_id
                if caller is None:
                    break
                run = client.read_flow_run(caller)
                if self._is_ended_by_a_runner(run):
                    break
                found.append(run.id)
        except (httpx.HTTPError, PrefectException):
            return None
        return found

    def _is_ended_by_a_runner(self, run: FlowRun) -> bool:
        """Whether a signal interrupts this thread when a run is cancelled: a second one would disturb how it ends."""
        return run.deployment_id is not None and self._executing is threading.main_thread()

    def _cancelled_among(self, client: SyncPrefectClient, runs: list[UUID]) -> str | None:
        """The name of one of some flow runs that is cancelled, or about to be."""
        try:
            found = client.read_flow_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=runs)))
        except (httpx.HTTPError, PrefectException):  # it is away, or has lost its database: nobody can cancel there
            return None
        for run in found:
            if run.state is not None and (run.state.is_cancelling() or run.state.is_cancelled()):
                return run.name
        return None

    def _interrupt(self, name: str) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self.cancelled = name
            if self._executing is threading.main_thread() and is_prefect_sigterm_handler_installed():
                # Interrupts whatever it waits for, also in the user's own code. Prefect's handler raises TerminationSignal.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            else:
                self._event.set()


def _callers_here(context: FlowRunContext | None) -> Iterator[FlowRunContext]:
    """The flow runs of this process around one, from the inside to the outside."""
    while context is not None and context._token is not None:
        around = context._token.old_value
        context = around if around is not Token.MISSING else None
        if context is not None:
            yield context


def show_as_cancelled(flow: Any, flow_run: FlowRun, state: State[Any]) -> None:
    """A hook of Prefect's, which calls it when a flow run that is Cancelling is over and has no runner."""
    with get_client(sync_client=True) as client:
        client.set_flow_run_state(flow_run.id, Cancelled(message="A training in it was ended when it was cancelled."))
