"""The connection to Ray: the cluster that ``RAY_ADDRESS`` names, or a local one."""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import Future

import ray

from trainlib.errors import ConnectionFailedError

# Workers reserve CPUs for as long as they train. Without any left over, a data pipeline that feeds
# them would wait for a CPU for ever, and they for it.
SPARE_CPUS = 2

_lock = threading.Lock()
_started_here = False


def connect() -> None:
    """Connect to Ray, unless it is connected already. Safe to call from any thread, any number of times."""
    with _lock:
        if ray.is_initialized():
            return
        # In a thread, because in the main one ray.init() would replace the SIGTERM handler, and a cancelled
        # flow run would be recorded as a crash. The thread has to stay: Ray's processes are started so that
        # they end with the thread that started them.
        connected: Future[None] = Future()
        threading.Thread(target=_connect_and_stay, args=(connected,), name="ray-connection", daemon=True).start()
        connected.result()


def is_local() -> bool:
    """Whether this process started the Ray that it is connected to: its size then never changes."""
    return _started_here and ray.is_initialized()


def _connect_and_stay(connected: Future[None]) -> None:
    try:
        _init()
    except BaseException as error:
        connected.set_exception(error)
        return
    connected.set_result(None)
    threading.Event().wait()


def _init() -> None:
    global _started_here
    address = os.environ.get("RAY_ADDRESS")
    logging.getLogger("ray").setLevel(logging.ERROR)  # its start-up notices are nothing a user can act on
    # Nor are the raylet's pages about a lost worker, which log_to_driver does not turn off: the attempt tells.
    ray._private.worker._worker_logs_enabled = False
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            ray.init(
                num_cpus=(os.cpu_count() or 1) + SPARE_CPUS,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        if not address:
            raise
        raise ConnectionFailedError(
            f"no Ray cluster answers at RAY_ADDRESS={address} ({str(error).splitlines()[0]}). Start it, correct the "
            "address, or unset RAY_ADDRESS to train on this machine."
        ) from error
    _started_here = not address
