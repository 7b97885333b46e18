"""The progress bar that MLflow draws for each checkpoint it downloads, also for one small file.

Workers would draw theirs across each other, and a script that only reads its result would have one in its terminal.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_progress_bars"]

_SWITCH = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"

_lock = threading.Lock()
_inside = 0


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Within the block, MLflow draws none, unless the user has asked for them. Its switch is the environment, which is put back.

    Example:
        >>> with without_progress_bars():
        ...     os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"]
        'false'
        >>> "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR" in os.environ
        False
    """
    global _inside
    with _lock:
        is_ours = _inside > 0 or _SWITCH not in os.environ
        if is_ours:
            _inside += 1
            os.environ[_SWITCH] = "false"
    try:
        yield
    finally:
        if is_ours:
            with _lock:
                _inside -= 1
                if not _inside:
                    os.environ.pop(_SWITCH, None)
