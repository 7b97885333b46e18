"""Horovod in a worker, so that the worker can be handed on."""

from __future__ import annotations

import os
import sys
from typing import Any

from trainlib.horovod import _installed as installed

# Should the training function use TensorFlow: Horovod's optimizer works with Keras 2 alone.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

if "torch" in installed.built_for():
    import horovod.torch as hvd

    from trainlib.torch import _state as torch_state


def snapshot() -> Any:
    """How it is now."""
    return torch_state.snapshot() if "horovod.torch" in sys.modules else None


def restore(state: Any) -> str | None:
    """Put it back to ``state``. None when that worked, else what is in the way."""
    if "tensorflow" in sys.modules:
        return "TensorFlow cannot be set up twice in one process"
    if "horovod.torch" not in sys.modules:
        return None
    return "Horovod is still running" if hvd.is_initialized() else torch_state.restore(state)
