"""The settings of both trainers: torch's process group, and what Accelerate is told in every worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, field_validator

from trainlib._execution.backend import Backend, BackendConfig
from trainlib._execution.waiting import gather
from trainlib.huggingface._accelerate_values import without_yaml_booleans
from trainlib.torch._config import TorchBackend, TorchConfig

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

__all__ = ["AccelerateConfig", "TransformersConfig"]


class _OverTorch(TorchConfig):
    """Settings of a library that trains over torch's process group."""

    state_module: ClassVar[str | None] = "trainlib.huggingface._state"

    @classmethod
    def over(cls, group: TorchConfig | None, **more: Any) -> Self:
        """These settings for a process group that is set up as ``group`` says.

        Example:
            >>> TransformersConfig.over(TorchConfig(timeout_s=60)).timeout_s
            60
        """
        return cls(**{**(group.model_dump(exclude_unset=True) if group is not None else {}), **more})


class TransformersConfig(_OverTorch):
    """How the torch process group of a TransformersTrainer is set up. A TorchConfig does as well.

    Example:
        >>> TransformersConfig(timeout_s=60).framework
        'huggingface'
    """

    framework: ClassVar[str] = "huggingface"


class AccelerateConfig(_OverTorch):
    """How the torch process group of an AccelerateTrainer is set up, and what Accelerate is told.

    Example:
        >>> AccelerateConfig(config={"mixed_precision": "bf16"}).config
        {'mixed_precision': 'bf16'}
    """

    framework: ClassVar[str] = "accelerate"

    config: dict[str, Any] = Field(
        default={},
        description="What a file from `accelerate config` contains. The number of processes and machines, addresses and ports "
        "in it do not count: they follow from the workers.",
    )

    @field_validator("config")
    @classmethod
    def _read(cls, config: dict[str, Any]) -> dict[str, Any]:
        return without_yaml_booleans(config)

    @property
    def backend_cls(self) -> type[Backend]:
        return AccelerateBackend


class AccelerateBackend(TorchBackend):
    """Joins the workers into one process group, and tells Accelerate in each of them how to train."""

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, AccelerateConfig)
        super().on_start(worker_group, backend_config)
        gather(
            [
                worker_group.execute_single_async(member.place.world_rank, _tell_accelerate, backend_config.config)
                for member in worker_group.members
            ],
            timeout=backend_config.timeout_s,
        )


def _tell_accelerate(config: dict[str, Any]) -> None:
    from trainlib.huggingface._launch import tell_accelerate

    tell_accelerate(config)
