"""The trainer for Horovod."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib._settings import TrainLoop
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.horovod._config import HorovodConfig
from trainlib.horovod._room import ROOM
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["HorovodTrainer"]


class HorovodTrainer(DataParallelTrainer):
    """Runs a training function in many processes that are one Horovod job. It calls ``hvd.init()``.

    Example:
        >>> from trainlib import ScalingConfig, session
        >>> from trainlib.horovod import HorovodTrainer
        >>> def train_func():
        ...     import horovod.torch as hvd
        ...     import torch
        ...
        ...     hvd.init()
        ...     mean = hvd.allreduce(torch.tensor([float(hvd.rank())]))
        ...     session.report({"mean": mean.item()})
        >>> trainer = HorovodTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
        >>> trainer.fit().metrics["mean"]  # doctest: +SKIP
        0.5
    """

    room = ROOM

    def __init__(
        self,
        train_loop_per_worker: TrainLoop,
        *,
        train_loop_config: dict[str, Any] | None = None,
        horovod_config: HorovodConfig | None = None,
        horovod_backend: HorovodConfig | None = None,
        tensorflow_backend: HorovodConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            horovod_config: how the workers become one Horovod job.
            horovod_backend: another spelling of ``horovod_config``.
            tensorflow_backend: another spelling of ``horovod_config``, from one of Ray's guides.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        super().__init__(**ROOM.base_arguments(locals()))
        assert isinstance(self.backend_config, HorovodConfig)
        if (timeout := self.backend_config.placement_group_timeout_s) is not None:
            scaling = self.scaling_config.model_copy(update={"placement_timeout_s": timeout})
            self.settings = replace(self.settings, scaling_config=scaling)
