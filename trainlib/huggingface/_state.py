"""The global state of PyTorch, Transformers and Accelerate in a worker. It is restored before the worker is reused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import transformers.trainer
from accelerate import PartialState
from transformers.utils import logging as transformers_logging

from trainlib.torch import _state as torch_state

__all__ = ["restore", "snapshot"]

# Transformers loads ``datasets``, and what that needs, with the first data loader.
BROUGHT = (*torch_state.BROUGHT, "datasets", "dill", "multiprocess", "xxhash")
REPLACED = torch_state.REPLACED


@dataclass
class HuggingFaceState:
    """The global settings that a training function can change."""

    torch: torch_state.TorchState
    verbosity: int
    has_progress_bars: bool
    look: Callable[..., None]
    """What Accelerate looks at its process with. It is replaced where models are sharded on CPUs."""


def snapshot() -> HuggingFaceState:
    """The present settings."""
    assert transformers.trainer  # imported now, so that a worker that waits has it: it takes seconds
    return HuggingFaceState(
        torch_state.snapshot(),
        transformers_logging.get_verbosity(),
        transformers_logging.is_progress_bar_enabled(),
        PartialState.__init__,
    )


def restore(state: HuggingFaceState) -> str | None:
    """Restore the settings in ``state``. Returns None, or the reason why this worker cannot be reused."""
    if (problem := torch_state.restore(state.torch)) is not None:
        return problem
    PartialState.__init__ = state.look  # type: ignore[method-assign]
    transformers_logging.set_verbosity(state.verbosity)
    if state.has_progress_bars:
        transformers_logging.enable_progress_bar()
    else:
        transformers_logging.disable_progress_bar()
    return None
