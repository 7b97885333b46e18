"""The seed that a training function has set by itself. torch remembers it; Python and NumPy do not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from trainlib._execution.worker_session import WorkerSession

__all__ = ["recording_own_seed"]

# What a torch has that nobody has seeded.
_UNSEEDED = 67280421310721


@contextmanager
def recording_own_seed(running: WorkerSession) -> Iterator[None]:
    """Within the block, ``torch.manual_seed(...)`` is recorded with the training, unless the function has recorded a seed itself.

    Of several, the last one is.
    """
    before = _torch_seed()
    try:
        yield
    finally:
        seed = _torch_seed()
        if seed not in (None, before, _UNSEEDED) and not running.has_seed:
            running.seeded(seed)


def _torch_seed() -> int | None:
    """The seed of torch's random numbers, if the process uses torch."""
    torch = sys.modules.get("torch")
    return None if torch is None or not hasattr(torch, "initial_seed") else int(torch.initial_seed())
