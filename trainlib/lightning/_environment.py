"""A worker's ranks, as Lightning asks for them."""

from __future__ import annotations

import os
from typing import ClassVar

from trainlib import session
from trainlib.lightning._package import OfLightning

__all__ = ["RayLightningEnvironment"]


class RayLightningEnvironment(OfLightning):
    """Tells Lightning's ``Trainer`` the ranks of this worker, so that it starts no processes of its own.

    Example:
        >>> from trainlib.lightning import RayDDPStrategy, RayLightningEnvironment
        >>> def train_func():
        ...     import lightning.pytorch as pl
        ...     trainer = pl.Trainer(strategy=RayDDPStrategy(), plugins=[RayLightningEnvironment()])
    """

    extends: ClassVar[str] = "plugins.environments:LightningEnvironment"

    @property
    def creates_processes_externally(self) -> bool:
        """Whether the processes are there already: the workers are."""
        return True

    @property
    def main_address(self) -> str:
        """The address of rank 0."""
        return os.environ.get("MASTER_ADDR", "127.0.0.1")

    def world_size(self) -> int:
        """How many workers train together."""
        return session.get_world_size()

    def global_rank(self) -> int:
        """This worker's place among all workers."""
        return session.get_world_rank()

    def local_rank(self) -> int:
        """This worker's place among the workers of its node."""
        return session.get_local_rank()

    def node_rank(self) -> int:
        """This node's place among the nodes."""
        return session.get_node_rank()

    def set_world_size(self, size: int) -> None:
        """Nothing: ScalingConfig has set it."""

    def set_global_rank(self, rank: int) -> None:
        """Nothing: the gang has set it."""

    def teardown(self) -> None:
        """Nothing: the environment variables are the worker's, and another ``Trainer`` may need them."""
