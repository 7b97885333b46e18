"""Cancel in the Prefect UI, for flow runs that are called from Python.

Cancel makes a flow run Cancelling, and leaves the rest to whoever executes it. A deployment's runs are executed by a runner or
worker of Prefect's, which ends their process with SIGTERM and makes them Cancelled. Nobody does that for a run that is called
from Python, so it looks after itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.context import FlowRunContext
from prefect.exceptions import PrefectException
from prefect.utilities.engine import is_prefect_sigterm_handler_installed

from trainlib._execution.waiting import cancelled_by

__all__ = ["CancelWatch"]

# A run has 10 s to be Cancelled, and checkpoints that are being saved get 5 of them.
LOOK_S = 2.0


class CancelWatch:
    """Asks Prefect now and then whether the present flow run is to be cancelled, and interrupts the present thread then.

    It does nothing for a run of a deployment.
    """

    def __init__(self) -> None:
        self.has_interrupted = False
        context = FlowRunContext.get()
        self._flow_run_id: UUID | None = None
        if context is not None and context.flow_run is not None and context.flow_run.deployment_id is None:
            self._flow_run_id = context.flow_run.id
        self._executing = threading.current_thread()
        self._event = threading.Event()
        """Interrupts what a thread that gets no signals waits for."""
        self._over = threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Within the block, interrupt this thread as Ctrl-C does, once, when the flow run is cancelled."""
        if self._flow_run_id is None:
            yield
            return
        threading.Thread(target=self._watch, name="cancel-watch", daemon=True).start()
        try:
            with cancelled_by(self._event):
                yield
        finally:
            self._over.set()
            with self._lock:  # it may be about to
                pass

    def is_cancelled(self) -> bool:
        """Whether the flow run is cancelled by now. Asks Prefect."""
        if self._flow_run_id is None:
            return False
        with get_client(sync_client=True) as client:
            return self.has_interrupted or self._is_cancelling(client)

    def _watch(self) -> None:
        with get_client(sync_client=True) as client:
            while not self._over.wait(LOOK_S):
                if self._is_cancelling(client):
                    self._interrupt()
                    return

    def _is_cancelling(self, client: SyncPrefectClient) -> bool:
        assert self._flow_run_id is not None
        try:
            state = client.read_flow_run(self._flow_run_id).state
        except (httpx.HTTPError, PrefectException):  # it is away, or has lost its database: nobody can cancel there
            return False
        return state is not None and state.is_cancelling()

    def _interrupt(self) -> None:
        with self._lock:
            if self._over.is_set():
                return
            self.has_interrupted = True
            if self._executing is threading.main_thread() and is_prefect_sigterm_handler_installed():
                # Interrupts whatever it waits for, also in the user's own code. Prefect's handler raises TerminationSignal.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            else:
                self._event.set()
