"""Whether the Ray that this process is connected to still lives.

When the control service of a Ray (its GCS) is gone, every call to it waits, and after a minute Ray ends this process without
an exception. So it is looked at now and then, and a training that has lost its Ray ends with an error long before that.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import ray
from ray._raylet import GcsClient  # type: ignore[attr-defined]

from trainlib.errors import RayLostError

__all__ = ["answers", "require", "require_answer", "session"]

# A GCS that keeps its state elsewhere may be restarted. Ray itself gives up after 60 s, and takes the process with it.
GRACE_S = 20.0
CHECK_EVERY_S = 2.0
_ANSWER_S = 1.0
_LOOK_S = 0.2


def session() -> str | None:
    """What tells the present connection to Ray from all others; None without one. Every new Ray counts its jobs from 1."""
    node = ray._private.worker._global_node
    if not ray.is_initialized() or node is None:
        return None
    return f"{node.session_name}/{ray.get_runtime_context().get_job_id()}"


def require(of: str | None) -> None:
    """Raise an error if a Ray is gone. Cheap enough to be called twice a second.

    Args:
        of: Its :func:`session`.

    Raises:
        RayLostError: it is gone, or this process has left it.
    """
    if session() != of:
        raise RayLostError("the Ray that this training ran on was shut down")
    if of is not None:
        _watch.look(of, now=False)


def require_answer() -> None:
    """Wait until Ray answers: a call to one that does not would not return.

    Raises:
        RayLostError: it is gone.
    """
    of = session()
    while of is not None and not _watch.look(of, now=True):
        time.sleep(_LOOK_S)


def answers(of: str | None = None) -> bool:
    """Whether there is a Ray that answers now, and if ``of`` is given, whether it is that one."""
    now = session()
    if now is None or of not in (None, now) or _ended_process() is not None:
        return False
    return _is_of_this_process() or (_answers() and _is_the_same())


class _Watch:
    """Looks at the processes of a Ray that this process has started, and at the address of any other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session = ""
        self._looked_at = 0.0
        self._answered_at = 0.0

    def look(self, session: str, *, now: bool) -> bool:
        """Whether it answers, as far as is known. With ``now``, it is asked; otherwise, that is done now and then."""
        if (ended := _ended_process()) is not None:
            raise RayLostError(f"the Ray that this training ran on is gone: its process {ended} has ended")
        with self._lock:
            if session != self._session:
                self._session, self._looked_at, self._answered_at = session, 0.0, time.monotonic()
            if not now and time.monotonic() - self._looked_at < CHECK_EVERY_S:
                return True
            self._looked_at = time.monotonic()
            if _answers():
                if now and not _is_the_same():
                    raise RayLostError(
                        "the Ray that this training ran on is gone: another one answers at "
                        f"{ray.get_runtime_context().gcs_address} now"
                    )
                self._answered_at = time.monotonic()
                return True
            silent_s = time.monotonic() - self._answered_at
        if silent_s > GRACE_S:
            address = ray.get_runtime_context().gcs_address
            raise RayLostError(
                f"the Ray that this training ran on is gone: its GCS at {address} has not answered for {silent_s:.0f} s. Start "
                "Ray again there, or set RAY_ADDRESS to one that runs"
            )
        return False


def _is_of_this_process() -> bool:
    """Whether this process has started the Ray: then its processes tell whether it lives."""
    node = ray._private.worker._global_node
    return node is not None and "gcs_server" in node.all_processes


def _ended_process() -> str | None:
    """The process of a Ray on this machine that has ended, though the Ray cannot do without it; None if there is none."""
    node = ray._private.worker._global_node
    started: dict[str, Any] = node.all_processes if node is not None else {}
    for name in ("gcs_server", "raylet"):
        for info in started.get(name, ()):
            if info.process.poll() is not None:
                return f"{name} ({info.process.pid})"
    return None


def _answers() -> bool:
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True


def _is_the_same() -> bool:
    """Whether the Ray that answers is the one that this process is connected to. Ray would end a process that takes one
    for the other."""
    worker: Any = ray._private.worker.global_worker
    connected = worker.gcs_client
    try:
        return bool(GcsClient(address=connected.address).cluster_id == connected.cluster_id)
    except ray.exceptions.RpcError:  # it has just gone
        return False


_watch = _Watch()
