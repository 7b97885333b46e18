"""``python -m trainlib._execution.head``: the process that holds the Ray of a platform.

It prints one line, such as ``{"ray": "127.0.0.1:6379"}``, once scripts can join, and runs until its standard input is closed or it
gets SIGTERM. Ray's processes and all workers end with it, however it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

import ray

import trainlib
from trainlib import _storage as storage
from trainlib._execution import cluster, liveness
from trainlib._execution.pool import shared_pool
from trainlib.errors import RayLostError

_LOOK_S = 0.5


def main() -> None:
    """Hold a Ray until nobody wants it any more."""
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    threading.Thread(target=_wait_for_end_of_input, args=(ending,), name="input", daemon=True).start()
    _leave_folder()
    cluster.start()
    cpus = int(ray.cluster_resources().get("CPU", 1))
    workers = shared_pool.serve(shared_pool.limits_of_platform(cpus))
    print(json.dumps({"ray": ray.get_runtime_context().gcs_address}), flush=True)
    session = liveness.session()
    try:
        while not ending.wait(_LOOK_S):
            liveness.require(session)
    except RayLostError as error:
        sys.exit(str(error))
    finally:
        del workers
        ray.shutdown()


def _wait_for_end_of_input(ending: threading.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    ending.set()


def _leave_folder() -> None:
    """Start no worker where this process happens to have been started: scripts must not find the modules there."""
    here = os.getcwd()
    if Path(trainlib.__file__).parent.parent == Path(here):
        return  # trainlib itself is found there
    sys.path[:] = [path for path in sys.path if path not in ("", here)]
    home = storage.home()
    home.mkdir(parents=True, exist_ok=True)
    os.environ["TRAINLIB_HOME"] = str(home)  # which may have been meant from here
    os.chdir(home)


if __name__ == "__main__":
    main()
