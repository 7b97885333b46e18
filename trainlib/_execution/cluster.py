"""The connection to Ray: the cluster that ``RAY_ADDRESS`` names, or a local one."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import ray

from trainlib._execution import liveness
from trainlib._execution.network import LOOPBACK
from trainlib._execution.waiting import raise_if_cancelled
from trainlib.errors import ConnectionFailedError, RayLostError

# Workers reserve CPUs for as long as they train. Without any left over, a data pipeline that feeds
# them would wait for a CPU for ever, and they for it.
SPARE_CPUS = 2

_ANSWER_S = 5.0
_RAYLET_S = 2.0
_NOTICE_S = 40.0
# A Ray that was lost may be started again at its address. So long is it waited for.
_BACK_S = 60.0
_lock = threading.Lock()
_reached: set[str] = set()
_was_lost = False
"""Whether this process has lost a Ray, and has not had another one since."""


def connect() -> None:
    """Connect to Ray, unless it is connected already. Safe to call from any thread, any number of times."""
    global _was_lost
    _leave_if_gone()
    with _lock:
        if not ray.is_initialized():
            if _was_lost:
                _wait_until_back()
            _connect()
            _was_lost = False
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray's own would first print a page about it


def _connect() -> None:
    require_answer()
    # In a thread, because in the main one ray.init() would replace the SIGTERM handler, and a cancelled
    # flow run would be recorded as a crash. The thread has to stay: Ray's processes are started so that
    # they end with the thread that started them.
    connected: Future[None] = Future()
    threading.Thread(target=_connect_and_stay, args=(connected,), name="ray-connection", daemon=True).start()
    connected.result()


def leave(session: str | None) -> None:
    """Let go of a Ray that is gone: it would end this process a minute later, and hold up all calls until then."""
    global _was_lost
    with _lock:
        if session is not None and liveness.session() == session:
            _was_lost = True
            ray.shutdown()


def _leave_if_gone() -> None:
    try:
        liveness.require_answer()
    except RayLostError:
        leave(liveness.session())


def reconnecting() -> str | None:
    """What a person should know before :func:`connect` is called: it takes a while after a Ray was lost."""
    if not _was_lost:
        return None
    address = _address()
    return f"waiting for Ray at {address} to be back, up to {_BACK_S:g} s" if address else "starting Ray again"


def resources(before: dict[str, float]) -> dict[str, float]:
    """All that the cluster has, or what it had ``before``, if it does not answer now: trainings on it find out why."""
    return ray.cluster_resources() if liveness.answers() else before


def _wait_until_back() -> None:
    deadline = time.monotonic() + _BACK_S
    while time.monotonic() < deadline:
        try:
            require_answer()
            return
        except ConnectionFailedError:
            raise_if_cancelled()
            time.sleep(0.2)


def require_answer() -> None:
    """Raise an error if ``RAY_ADDRESS`` names a place where nobody listens. Ray itself would try for minutes."""
    address = _address()
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if ray.is_initialized() or not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise _no_answer(address, error) from error


def _address() -> str:
    address = os.environ.get("RAY_ADDRESS", "")
    return "" if address == "local" else address


def _no_answer(address: str, error: Exception) -> ConnectionFailedError:
    return ConnectionFailedError(
        f"no Ray cluster answers at RAY_ADDRESS={address} ({str(error).splitlines()[0]}). Start it, correct the address, "
        "or unset RAY_ADDRESS to train on this machine."
    )


def is_local() -> bool:
    """Whether this process started the Ray that it is connected to: its size then never changes."""
    node = ray._private.worker._global_node
    return ray.is_initialized() and node is not None and node.is_head()


def node_is_lost(node_id: str) -> bool:
    """Whether a node is gone. Ray itself needs a quarter of a minute to notice; its raylet's port tells at once.

    Raises:
        RayLostError: all of Ray is gone.
    """
    liveness.require_answer()
    return all(node["NodeID"] != node_id or _is_lost(node) for node in ray.nodes())


def wait_for_lost_nodes() -> Iterator[str]:
    """Wait until Ray has noticed all nodes that are gone: until then it would place workers there.

    Yields what a person should know of the wait.
    """
    liveness.require_answer()
    deadline = time.monotonic() + _NOTICE_S
    told = False
    while lost := [node for node in ray.nodes() if node["Alive"] and _is_lost(node)]:
        if time.monotonic() > deadline:
            return
        if not told:
            yield f"waiting for Ray to give up node(s) {', '.join(node['NodeManagerAddress'] for node in lost)}"
            told = True
        time.sleep(0.2)


def _is_lost(node: dict[str, Any]) -> bool:
    if not node["Alive"]:
        return True
    try:
        socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), timeout=_RAYLET_S).close()
    except OSError:
        return node["NodeID"] in _reached  # one that never answered may be behind a firewall
    _reached.add(node["NodeID"])
    return False


def _connect_and_stay(connected: Future[None]) -> None:
    try:
        _init()
    except BaseException as error:
        connected.set_exception(error)
        return
    connected.set_result(None)
    threading.Event().wait()


def _init() -> None:
    address = _address()
    logging.getLogger("ray").setLevel(logging.ERROR)  # its start-up notices are nothing a user can act on
    # Nor are the raylet's pages about a lost worker, which log_to_driver does not turn off: the attempt tells.
    ray._private.worker._worker_logs_enabled = False
    try:
        if not address:
            with _only_loopback():
                _start_local()
        elif _is_on_loopback_only(address):
            with _only_loopback():
                _join(address)
        else:
            _join(address)
    except Exception as error:  # as bare as this is what Ray raises when its processes are too slow to start
        if address:
            raise _no_answer(address, error) from error
        raise ConnectionFailedError(
            f"Ray did not start on this machine: {error}. See that it has memory, disk and processor time to spare, or set "
            "RAY_ADDRESS to a cluster that runs."
        ) from error


def _is_on_loopback_only(address: str) -> bool:
    """Whether a Ray on this machine can be reached by its loopback address only, as one that :func:`connect` started."""
    host, _, port = address.rpartition(":")
    if host not in (LOOPBACK, "localhost"):
        return False
    try:
        socket.create_connection((ray.util.get_node_ip_address(), int(port)), timeout=_ANSWER_S).close()
    except OSError:
        return True
    return False


def _join(address: str) -> None:
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)


def _start_local() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",  # not one that somebody else has started on this machine
        num_cpus=(os.cpu_count() or 1) + SPARE_CPUS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        # Ray makes workers yield to everything else by default. Here they are what the machine is for.
        _system_config={"worker_niceness": 0},
        _node_ip_address=LOOPBACK,
    )


@contextmanager
def _only_loopback() -> Iterator[None]:
    """Let Ray accept the loopback address for its node, as it does by itself on systems where it starts no clusters.

    Otherwise it takes the address of the host in its place, and all its processes listen on all interfaces.
    """
    from ray._private import ray_constants

    may_start_clusters = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = may_start_clusters
