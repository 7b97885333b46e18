"""What happens when a process ends that trainlib has connected to Ray: it leaves at once.

Ray by itself takes two seconds for it, and Python another one to take thousands of imported modules apart. All that was
reported is in the registry by then: a training is not over before.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import stat

import ray

from trainlib._execution import liveness

__all__ = ["leave_at_once"]

_BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)

_YOUNG = 1
"""The last of the garbage collector's generations without what has lived for long."""

_session: str | None = None


def leave_at_once() -> None:
    """Let this process end quickly. To be called by whoever has connected it to Ray."""
    global _session
    _session = liveness.session()


def _leave() -> None:
    if _session is None:
        return
    if liveness.session() == _session:
        ray.shutdown()  # before Ray's own exit handler does it: that one first sleeps, so that workers can print
    _skip_taking_apart()


def _skip_taking_apart() -> None:
    """Spare Python its last searches for reference cycles, in all that was imported. The system takes the memory back.

    What those searches would have found may be a file that is still open. What has become garbage lately is collected: looking
    through all that was imported would take longer than the rest of leaving.
    """
    gc.collect(_YOUNG)
    for found in gc.get_objects():
        if issubclass(type(found), _BUFFERED):
            try:
                if stat.S_ISREG(os.fstat(found.fileno()).st_mode):  # a pipe that nobody reads would hold this process
                    found.flush()
            except (ValueError, OSError):
                continue  # closed, detached, for reading only, or broken: Python would not have got further
    gc.freeze()


# Exit handlers run in reverse order: this one before Ray's, and after those that a user has registered since.
atexit.register(_leave)
