"""The trainer for PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib._settings import TrainLoop
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.torch._config import TorchConfig
from trainlib.torch._room import ROOM
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["TorchTrainer"]


class TorchTrainer(DataParallelTrainer):
    """Runs a training function in many processes that are joined into one torch process group.

    Example:
        >>> from trainlib import ScalingConfig, session
        >>> from trainlib.torch import TorchTrainer
        >>> def train_func(config):
        ...     for epoch in range(config["num_epochs"]):
        ...         session.report({"epoch": epoch})
        >>> trainer = TorchTrainer(
        ...     train_func, train_loop_config={"num_epochs": 2}, scaling_config=ScalingConfig(num_workers=2)
        ... )
        >>> trainer.fit().metrics["epoch"]  # doctest: +SKIP
        1
    """

    room = ROOM

    def __init__(
        self,
        train_loop_per_worker: TrainLoop,
        *,
        train_loop_config: dict[str, Any] | None = None,
        torch_config: TorchConfig | None = None,
        torch_backend: TorchConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            torch_config: how the process group is set up.
            torch_backend: another spelling of ``torch_config``, from one of Ray's guides.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        super().__init__(**ROOM.base_arguments(locals()))
