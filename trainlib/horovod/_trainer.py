"""The trainer for Horovod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.horovod import _installed as installed
from trainlib.horovod._config import HorovodConfig
from trainlib.trainer import DataParallelTrainer, TrainLoop, backend_config_of

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

    _backend_argument = "horovod_config"

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
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        """A trainer; ``horovod_config``, ``horovod_backend`` and, as one guide has it, ``tensorflow_backend`` are
        spellings of one argument."""
        installed.require()
        config = backend_config_of(
            HorovodConfig,
            horovod_config=horovod_config,
            horovod_backend=horovod_backend,
            tensorflow_backend=tensorflow_backend,
        )
        super().__init__(
            train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=config,
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            preprocessor=preprocessor,
            resume_from_checkpoint=resume_from_checkpoint,
        )
        if config.placement_group_timeout_s is not None:
            self.scaling_config = self.scaling_config.model_copy(
                update={"placement_timeout_s": config.placement_group_timeout_s}
            )
