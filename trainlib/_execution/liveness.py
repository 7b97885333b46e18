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

__all__ = ["answers", "expect_no_return", "is_served", "require", "require_answer", "session"]

# A GCS that keeps its state elsewhere may be restarted. Ray itself gives up after 60 s, and takes the process with it.
GRACE_S = 20.0
# Nobody restarts the GCS of a platform alone. It may be too busy to accept a connection, though.
PLATFORM_GRACE_S = 3.0
CHECK_EVERY_S = 2.0
LEFT = "the Ray that this training ran on was shut down"
"""What is said where a thread of this process has left the Ray of another one's training."""
_ANSWER_S = 1.0
_LOOK_S = 0.2
# What every connection of gRPC begins with: the preface of HTTP/2, and settings that change nothing.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def session() -> str | None:
    """What tells the present connection to Ray from all others; None without one. Every new Ray counts its jobs from 1."""
    # Not by Ray's public functions: when another thread has just left Ray, they would connect this process again.
    worker, node = ray._private.worker.global_worker, ray._private.worker._global_node
    if not worker.connected or node is None:
        return None
    job = worker.current_job_id
    if job.is_nil():
        return None
    if worker._cached_job_id is None:  # to ask a core worker that another thread shuts down ends the process
        worker.set_cached_job_id(job)
    return f"{node.session_name}/{job.hex()}"


def require(of: str | None) -> None:
    """Raise an error if a Ray is gone. Cheap enough to be called twice a second.

    Args:
        of: Its :func:`session`.

    Raises:
        RayLostError: it is gone, or this process has left it.
    """
    if session() != of:
        raise RayLostError(LEFT)
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
        if session() != of:
            raise RayLostError(LEFT)


def expect_no_return() -> None:
    """Count the Ray that this process is connected to as gone soon after it is silent: it will not be restarted in place."""
    _watch.no_return = session()


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
        self._silent_since: float | None = None
        self.no_return: str | None = None
        """The session that is counted as gone soon after it is silent."""

    def look(self, session: str, *, now: bool) -> bool:
        """Whether it answers, as far as is known. With ``now``, it is asked; otherwise, that is done now and then."""
        if (ended := _ended_process()) is not None:
            raise RayLostError(f"the Ray that this training ran on is gone: its process {ended} has ended")
        if _is_of_this_process():
            return True
        with self._lock:
            if session != self._session:
                self._session, self._looked_at, self._silent_since = session, 0.0, None
            if not now and time.monotonic() - self._looked_at < CHECK_EVERY_S:
                return True
            self._looked_at = asked_at = time.monotonic()
            if _answers():
                if now and not _is_the_same():
                    raise RayLostError(
                        f"the Ray that this training ran on is gone: another one answers at {_gcs_address()} now"
                    )
                self._silent_since = None
                return True
            if self._silent_since is None:
                self._silent_since = asked_at
            silent_s = time.monotonic() - self._silent_since
        if silent_s > (PLATFORM_GRACE_S if session == self.no_return else GRACE_S):
            address = _gcs_address()
            if session == self.no_return:
                raise RayLostError(
                    f"the platform's Ray at {address}, which this training ran on, is gone. `trainlib status` tells more; "
                    "`trainlib up` starts a platform"
                )
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
    host, _, port = _gcs_address().rpartition(":")
    return bool(port) and is_served(host.strip("[]"), int(port))


def _gcs_address() -> str:
    """Where the Ray is that this process is connected to; empty if another thread has just left it."""
    client = getattr(ray._private.worker.global_worker, "gcs_client", None)
    return client.address if client is not None else ""


def is_served(host: str, port: int, timeout: float = _ANSWER_S) -> bool:
    """Whether a process serves gRPC at an address, and works.

    The kernel accepts connections for a process that hangs, so it is greeted. A process that works greets back, or hangs up.
    """
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.sendall(_GREETING)
            connection.recv(1)
    except ConnectionResetError:
        return True
    except OSError:
        return False
    return True


def _is_the_same() -> bool:
    """Whether the Ray that answers is the one that this process is connected to. Ray would end a process that takes one
    for the other."""
    connected = getattr(ray._private.worker.global_worker, "gcs_client", None)
    if connected is None:  # another thread has just left it
        return False
    try:
        return bool(GcsClient(address=connected.address).cluster_id == connected.cluster_id)
    except ray.exceptions.RpcError:  # it has just gone
        return False


_watch = _Watch()
