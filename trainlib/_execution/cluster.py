"""The connection to Ray: the cluster that ``RAY_ADDRESS`` names, that of the platform that is up, or a local one."""

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
from ray._private import auto_init_hook
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available

from trainlib._execution import leaving, liveness, remote_env, signal_handlers
from trainlib._execution.local_ray import expect_one_machine, only_loopback, start_local
from trainlib._execution.network import LOOPBACK
from trainlib._execution.waiting import raise_if_cancelled
from trainlib._platform import joining, record
from trainlib._runtime_env import RuntimeEnv
from trainlib.errors import (
    CodeTooLargeError,
    ConnectionFailedError,
    InvalidArgumentError,
    PlatformMismatchError,
    RayLostError,
)

_ANSWER_S = 5.0
_RAYLET_S = 2.0
_NOTICE_S = 40.0
# A Ray that was lost may be started again at its address. So long is it waited for.
_BACK_S = 60.0
_lock = threading.Lock()
_reached: set[str] = set()
_was_lost = False
"""Whether this process has lost a Ray, and has not had another one since."""
_CONNECTS_BY_ITSELF = auto_init_hook.enable_auto_connect
_users = 0
_users_lock = threading.Lock()


@contextmanager
def in_use() -> Iterator[None]:
    """Let nothing but :func:`connect` connect this process to Ray.

    Ray's functions connect by themselves when there is no connection. When a Ray is lost under several trainings of one
    process, that would happen in the thread of one of them while another one connects, and Ray survives neither.
    """
    global _users
    with _users_lock:
        _users += 1
        auto_init_hook.enable_auto_connect = False
    try:
        yield
    finally:
        with _users_lock:
            _users -= 1
            auto_init_hook.enable_auto_connect = not _users and _CONNECTS_BY_ITSELF


def connect(runtime_env: RuntimeEnv | None = None) -> None:
    """Connect to Ray, unless it is connected already. Safe to call from any thread, any number of times.

    Args:
        runtime_env: What the training needs that connects, on machines that do not have it.

    Raises:
        ConnectionFailedError: nobody answers at ``RAY_ADDRESS``, or Ray does not start.
        CodeTooLargeError: the script's folder is too large to be sent to the cluster.
        InvalidArgumentError: Ray does not accept the runtime_env.
    """
    global _was_lost
    _leave_if_gone()
    with _lock:
        if not ray.is_initialized():
            if _was_lost:
                _answers_within(_BACK_S)
            _connect(runtime_env)
            _was_lost = False
    handler = signal.getsignal(signal.SIGTERM)
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(
            signal.SIGTERM, handler
        )  # also where the user has called ray.init(): Ray's own first prints a page


def join() -> bool:
    """Connect to the Ray that there is, without sending any code there. Gives False if there is none: then none is started.

    Raises:
        ConnectionFailedError: nobody answers at ``RAY_ADDRESS``.
    """
    with _lock:
        if ray.is_initialized():
            return True
        address = _address()
        if address:
            _require_answer_now()
            _connect_to(address, None, sends_code=False)
        return bool(address)


def start() -> None:
    """Start a Ray of this process's own, whatever else there is to join."""
    with _lock:
        _connect_to("", None)


def _connect(runtime_env: RuntimeEnv | None) -> None:
    require_answer()
    _connect_to(_address(), runtime_env)


def _connect_to(address: str, runtime_env: RuntimeEnv | None, *, sends_code: bool = True) -> None:
    # In a thread, because in the main one ray.init() would replace the SIGTERM handler, and a cancelled
    # flow run would be recorded as a crash. The thread has to stay: Ray's processes are started so that
    # they end with the thread that started them.
    connected: Future[None] = Future()
    threading.Thread(
        target=_connect_and_stay,
        args=(address, runtime_env, sends_code, connected),
        name="ray-connection",
        daemon=True,
    ).start()
    connected.result()


def leave(session: str | None) -> None:
    """Let go of a Ray that is gone: it would end this process a minute later, and hold up all calls until then."""
    global _was_lost
    with _lock:
        if session is not None and liveness.session() == session:
            _was_lost = True
            if not liveness.answers():
                _forget_subscriptions()
            ray.shutdown()


def _forget_subscriptions() -> None:
    """Ray's own messages come by subscriptions, and ``ray.shutdown()`` would wait until a GCS that hangs has ended them.

    The thread that waits for messages ends when its connection does.
    """
    worker: Any = ray._private.worker.global_worker
    worker.threads_stopped.set()
    worker.threads_stopped = threading.Event()  # the next connection's threads have one of their own
    for name in ("gcs_error_subscriber", "gcs_log_subscriber", "listener_thread", "logger_thread"):
        if hasattr(worker, name):
            delattr(worker, name)


def _leave_if_gone() -> None:
    session = liveness.session()  # before it is asked: meanwhile, another thread may leave it, and join the next one
    try:
        liveness.require_answer()
    except RayLostError:
        leave(session)


def reconnecting() -> str | None:
    """What a person should know before :func:`connect` is called: it takes a while after a Ray was lost."""
    if not _was_lost:
        return None
    address = _address()
    return f"waiting for Ray at {address} to be back, up to {_BACK_S:g} s" if address else "starting Ray again"


def resources(before: dict[str, float]) -> dict[str, float]:
    """All that the cluster has, or what it had ``before``, if it does not answer now: trainings on it find out why."""
    if not liveness.answers():
        return before
    try:
        return ray.cluster_resources()
    except ray.exceptions.RaySystemError:  # a training has just left it
        return before


def require_answer() -> None:
    """Raise an error if there should be a Ray where nobody listens, or answers. Ray itself would try for minutes.

    A platform restarts its Ray, so that one is waited for.
    """
    if os.environ.get("RAY_ADDRESS") or not _answers_within(joining.RESTART_S):
        _require_answer_now()


def _answers_within(seconds: float) -> bool:
    """Wait for so long at most. A platform's Ray has another address once it is restarted."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            _require_answer_now()
            return True
        except PlatformMismatchError:
            raise
        except ConnectionFailedError:
            raise_if_cancelled()
            time.sleep(0.2)
    return False


def _require_answer_now() -> None:
    address = _address()
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if ray.is_initialized() or not (host and port.isdigit()):
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise _no_answer(address, error) from error
    if not liveness.is_served(host, int(port), _ANSWER_S):
        raise _no_answer(address, TimeoutError(f"it accepts connections, and is silent for {_ANSWER_S:g} s"))


def _address() -> str:
    """The Ray to join; empty if one is to be started. ``RAY_ADDRESS=local`` always starts one.

    Raises:
        PlatformMismatchError: it is a platform's of another environment.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    if address:
        return "" if address == "local" else address
    platform = joining.joined()
    return platform.ray if platform is not None else ""


def _of_platform() -> str:
    """The address of the platform's Ray; empty if none is up."""
    platform = record.running()
    return platform.ray if platform is not None else ""


def _no_answer(address: str, error: Exception) -> ConnectionFailedError:
    why = str(error).splitlines()[0]
    if os.environ.get("RAY_ADDRESS"):
        return ConnectionFailedError(
            f"no Ray cluster answers at RAY_ADDRESS={address} ({why}). Start it, correct the address, or unset RAY_ADDRESS to "
            "train on this machine."
        )
    return ConnectionFailedError(
        f"a platform is up, but its Ray does not answer at {address} ({why}). `trainlib status` tells more. Start the "
        "platform again with `trainlib down` and `trainlib up`, or set RAY_ADDRESS=local to train without it."
    )


def in_task() -> bool:
    """Whether this process runs a Ray task, which may be its last. An actor is called again."""
    if not ray.is_initialized() or ray._private.worker.global_worker.mode != ray.WORKER_MODE:
        return False
    return ray.get_runtime_context().get_actor_id() is None


def is_local() -> bool:
    """Whether the Ray that this process is connected to is its own, or the platform's: its size then never changes."""
    node = ray._private.worker._global_node
    if not ray.is_initialized() or node is None:
        return False
    return node.is_head() or ray.get_runtime_context().gcs_address == _of_platform()


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


def _connect_and_stay(address: str, runtime_env: RuntimeEnv | None, sends_code: bool, connected: Future[None]) -> None:
    try:
        with signal_handlers.kept(signal.SIGTERM):  # Ray's own prints a page, and ends the process
            _init(address, runtime_env, sends_code)
    except BaseException as error:
        connected.set_exception(error)
        return
    connected.set_result(None)
    threading.Event().wait()


def _init(address: str, runtime_env: RuntimeEnv | None, sends_code: bool) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)  # its start-up notices are nothing a user can act on
    # Nor are the raylet's pages about a lost worker, which log_to_driver does not turn off: the attempt tells.
    ray._private.worker._worker_logs_enabled = False
    try:
        if not address:
            with only_loopback():
                start_local()
        elif address == _of_platform():
            # Ray takes the token of this user by itself only for a cluster that it has found by itself.
            maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
            expect_one_machine()
            with only_loopback():
                _join(address)
            liveness.expect_no_return()
        elif _is_on_loopback_only(address):
            expect_one_machine()
            with only_loopback():
                _join(address, remote_env.for_job(address, runtime_env) if sends_code else None)
        else:
            _join(address, remote_env.for_job(address, runtime_env) if sends_code else None)
    except (CodeTooLargeError, InvalidArgumentError):
        raise
    except Exception as error:  # as bare as this is what Ray raises when its processes are too slow to start
        if address:
            raise _no_answer(address, error) from error
        raise ConnectionFailedError(
            f"Ray did not start on this machine: {error}. See that it has memory, disk and processor time to spare, or set "
            "RAY_ADDRESS to a cluster that runs."
        ) from error
    leaving.leave_at_once()


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


def _join(address: str, runtime_env: dict[str, Any] | None = None) -> None:
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, runtime_env=runtime_env)
    except (ray.exceptions.RuntimeEnvSetupError, ValueError) as error:
        if runtime_env is None:
            raise
        raise InvalidArgumentError(f"runtime_env cannot be used on the cluster at {address}: {error}") from error
