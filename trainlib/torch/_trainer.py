"""The trainer for PyTorch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.torch._config import TorchConfig
from trainlib.trainer import DataParallelTrainer, TrainLoop, backend_config_of

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

    _backend_argument = "torch_config"

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
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        """A trainer; ``torch_config`` and ``torch_backend`` are two spellings of one argument."""
        if find_spec("torch") is None:
            raise ImportError("TorchTrainer needs PyTorch: pip install 'trainlib[torch]'")
        super().__init__(
            train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=backend_config_of(TorchConfig, torch_config=torch_config, torch_backend=torch_backend),
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            preprocessor=preprocessor,
            resume_from_checkpoint=resume_from_checkpoint,
        )
