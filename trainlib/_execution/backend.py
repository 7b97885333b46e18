"""What a framework needs to do around a training function: the interface that each one implements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ConfigDict

from trainlib._positional import PositionalSettings

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

SHUTDOWN_S = 10.0
"""How long workers may take to disconnect. After that they are ended."""

__all__ = ["Backend", "BackendConfig"]


class Backend:
    """Sets a framework up on the workers of a gang, and takes it down again.

    Its methods run in the process that coordinates the training and reach the workers through the group.
    The default does nothing, which suits a training function that needs no framework.
    """

    share_cuda_visible_devices: ClassVar[bool] = False
    """Whether the workers of a node see each other's GPUs, so that the one of a worker is ``cuda:{local_rank}``. Not for a
    framework that takes the memory of every GPU it sees."""

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        """The workers are there, with their ranks. Connect them."""

    def on_training_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        """The training function is about to start."""

    def on_early_return(
        self, worker_group: WorkerGroup, backend_config: BackendConfig, returned: Sequence[int]
    ) -> None:
        """These ranks have returned while others still run. See to it that none waits for them in a collective.

        What it starts on the workers must not be waited for: they may be busy.
        """

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        """All training functions have returned. Disconnect the workers."""


class BackendConfig(PositionalSettings):
    """A framework's settings, and which :class:`Backend` they are for.

    Example:
        >>> BackendConfig().backend_cls.__name__
        'Backend'
    """

    model_config = ConfigDict(extra="forbid")

    framework: ClassVar[str] = "function"
    """The framework's name, as shown to people."""

    state_module: ClassVar[str | None] = None
    """A module that imports the framework and has ``snapshot()`` and ``restore(snapshot)`` for its global
    state. Workers import it before they are needed, and are handed on only when it restores them."""

    @property
    def backend_cls(self) -> type[Backend]:
        """The backend that these settings are for."""
        return Backend

    @property
    def train_func_context(self) -> Callable[[], AbstractContextManager[Any]]:
        """What each worker enters around the training function, in its thread. It is sent there by its name."""
        return nullcontext
