"""Collectives that hang because a peer has stopped calling them.

TensorFlow waits for such a peer for ever. Its own timeout makes a thread for every collective; this makes one
for the whole training, which costs nothing while there is progress.
"""

from __future__ import annotations

import sys
import threading
import time

# A process that waits for its peers uses next to nothing; one that computes or reads uses far more.
IDLE_SHARE = 0.02
LOOK_EVERY_S = 1.0


def watch_for_stalls(timeout_s: float) -> None:
    """From now on, a collective that has made no progress for so long raises in the training function."""
    threading.Thread(target=_watch, args=(timeout_s,), name="tensorflow-stalls", daemon=True).start()


def abort_collectives(why: str) -> None:
    """Make collectives raise, the one that hangs now and all later ones."""
    from tensorflow.python.eager import context
    from tensorflow.python.framework import errors

    context.context().abort_collective_ops(errors.UNAVAILABLE, why)


def _watch(timeout_s: float) -> None:
    progress_at, cpu_s = time.monotonic(), time.process_time()
    while True:
        time.sleep(LOOK_EVERY_S)
        now, used = time.monotonic(), time.process_time()
        if used - cpu_s > IDLE_SHARE * LOOK_EVERY_S or not _is_inside_tensorflow():
            progress_at = now
        elif now - progress_at > timeout_s:
            abort_collectives(
                f"no progress for {timeout_s} s: another rank has stopped calling collectives. If it needs longer, "
                "raise TensorflowConfig.timeout_s"
            )
            return
        cpu_s = used


def _is_inside_tensorflow() -> bool:
    """Whether some thread is in the middle of a TensorFlow operation."""
    return any("tensorflow/python/eager/" in frame.f_code.co_filename for frame in sys._current_frames().values())
