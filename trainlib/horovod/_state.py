"""The state of Horovod in a worker. It is restored before the worker is reused."""

from __future__ import annotations

import os
import sys
from typing import Any

from trainlib.horovod import _installed as installed

# In case the training function uses TensorFlow: Horovod's optimizer works only with Keras 2.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

if "torch" in installed.built_for():
    import horovod.torch as hvd

    from trainlib.torch import _state as torch_state


def snapshot() -> Any:
    """The present settings."""
    return torch_state.snapshot() if "horovod.torch" in sys.modules else None


def restore(state: Any) -> str | None:
    """Restore the settings in ``state``. Returns None, or the reason why this worker cannot be reused."""
    if "tensorflow" in sys.modules:
        return "TensorFlow cannot be set up twice in one process"
    if "horovod.torch" not in sys.modules:
        return None
    return "Horovod is still running" if hvd.is_initialized() else torch_state.restore(state)
