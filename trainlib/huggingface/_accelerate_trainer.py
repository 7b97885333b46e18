"""The trainer for Hugging Face's Accelerate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from trainlib._data.config import DataConfig
from trainlib._settings import TrainerSettings, TrainLoop
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.huggingface._accelerate_file import require_known, require_usable, settings_in
from trainlib.huggingface._accelerate_room import ROOM
from trainlib.huggingface._accelerate_values import require_known_values
from trainlib.huggingface._config import AccelerateConfig
from trainlib.huggingface._trainer import as_config
from trainlib.torch._config import TorchConfig
from trainlib.torch._trainer import TorchTrainer
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["AccelerateTrainer"]


class AccelerateTrainer(TorchTrainer):
    """Runs a training function in many processes, in which ``accelerate.Accelerator()`` is configured.

    Example:
        >>> from trainlib import ScalingConfig, session
        >>> from trainlib.huggingface import AccelerateTrainer
        >>> def train_func():
        ...     from accelerate import Accelerator
        ...
        ...     accelerator = Accelerator()
        ...     session.report({"processes": accelerator.num_processes})
        >>> trainer = AccelerateTrainer(
        ...     train_func, accelerate_config={"mixed_precision": "bf16"}, scaling_config=ScalingConfig(num_workers=2)
        ... )
        >>> trainer.fit().metrics["processes"]  # doctest: +SKIP
        2
    """

    room = ROOM

    def __init__(
        self,
        train_loop_per_worker: TrainLoop,
        *,
        train_loop_config: dict[str, Any] | None = None,
        accelerate_config: AccelerateConfig | dict[str, Any] | str | Path | None = None,
        torch_config: TorchConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            accelerate_config: what ``Accelerator()`` is told: a file that ``accelerate config`` has written, or a dict like it.
                How many processes and machines there are, their addresses and their ports follow from the workers. Default:
                nothing, and not the file in the home folder.
            torch_config: how the process group is set up.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        told = _told(accelerate_config, torch_config)
        given = {**locals(), "accelerate_config": told, "torch_config": None}
        given.pop("told")
        DataParallelTrainer.__init__(self, **ROOM.base_arguments(given))
        if isinstance(told, AccelerateConfig):
            require_usable(told.config, self.scaling_config)
            require_known(told.config)
            require_known_values(told.config)

    @classmethod
    def from_settings(cls, settings: TrainerSettings, **changes: Any) -> Self:
        """A trainer with these settings, and with some arguments changed."""
        if changes.get("torch_config") is not None and "accelerate_config" not in changes:
            config = settings.backend_config
            assert isinstance(config, AccelerateConfig)
            changes["accelerate_config"] = config.config  # which is no part of a TorchConfig
        return super().from_settings(settings, **changes)


def _told(accelerate_config: Any, torch_config: Any) -> Any:
    """Both arguments as one. What is no settings at all is given back, for the error about it."""
    if isinstance(accelerate_config, AccelerateConfig) and torch_config is None:
        return accelerate_config
    group = as_config(AccelerateConfig, torch_config)
    if group is not None and not isinstance(group, AccelerateConfig):
        return group
    config = accelerate_config.config if isinstance(accelerate_config, AccelerateConfig) else None
    if accelerate_config is not None and config is None:
        config = settings_in(accelerate_config)
    return AccelerateConfig.over(group, **({"config": config} if config is not None else {}))
