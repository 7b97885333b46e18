"""Ends collectives that hang because a peer has left, or has stopped calling them.

TensorFlow waits for such a peer forever. Its own timeout starts a thread for every collective. This is one thread
for the whole training, which costs nothing while there is progress.
"""

from __future__ import annotations

import sys
import threading
import time

from trainlib import session
from trainlib.errors import StalledError

CHECK_EVERY_S = 1.0
# A process that waits for its peers uses hardly any CPU. One that computes or reads soon uses far more.
IDLE_CPU_S = 0.5
IDLE_SHARE = 0.02

_watcher: threading.Thread | None = None


def watch(timeout_s: float) -> None:
    """Fail the training function if it waits inside TensorFlow for ``timeout_s`` without doing anything."""
    global _watcher
    if _watcher is None:
        _watcher = threading.Thread(target=_watch, args=(timeout_s,), name="tensorflow-stalls", daemon=True)
        _watcher.start()


def abort_collectives(why: str) -> None:
    """Make collectives raise: the one that hangs now, and all later ones."""
    if _watcher is None:
        return  # there is no strategy across workers, so nothing waits
    from tensorflow.python.eager import context
    from tensorflow.python.framework import errors

    context.context().abort_collective_ops(errors.UNAVAILABLE, why)


def _watch(timeout_s: float) -> None:
    since, cpu_s = time.monotonic(), time.process_time()
    while (waited := time.monotonic() - since) <= timeout_s:
        time.sleep(CHECK_EVERY_S)
        is_busy = time.process_time() - cpu_s > IDLE_CPU_S + IDLE_SHARE * waited
        if is_busy or not _is_inside_tensorflow():
            since, cpu_s = time.monotonic(), time.process_time()
    session.current("watch").give_up(
        StalledError(
            f"no progress for {timeout_s} s inside TensorFlow. Another rank has stopped calling collectives. If it only needs "
            "more time, raise TensorflowConfig.timeout_s"
        )
    )


def _is_inside_tensorflow() -> bool:
    """Whether a thread is running a TensorFlow operation, or connecting to the other workers."""
    return any("tensorflow/python/eager/" in frame.f_code.co_filename for frame in sys._current_frames().values())
