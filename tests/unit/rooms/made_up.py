"""A framework that exists only in these tests: its settings, its trainer and its room, as a folder would have them."""

from __future__ import annotations

from typing import Any, ClassVar

from trainlib import DataParallelTrainer
from trainlib._rooms import Room
from trainlib.execution import BackendConfig


class MadeUpConfig(BackendConfig):
    """Its settings."""

    framework: ClassVar[str] = "made-up"
    speed: int = 1


ROOM = Room(
    config_class=MadeUpConfig,
    config_arguments=("made_up_config", "made_up_backend"),
    trainer=f"{__name__}:MadeUpTrainer",
    packages=("json", "made_up_package"),
    extra="made-up",
)


class MadeUpTrainer(DataParallelTrainer):
    """Its trainer."""

    room = ROOM

    def __init__(
        self,
        train_loop_per_worker: Any,
        *,
        train_loop_config: dict[str, Any] | None = None,
        made_up_config: MadeUpConfig | None = None,
        made_up_backend: MadeUpConfig | None = None,
        scaling_config: Any = None,
        run_config: Any = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: Any = None,
        preprocessor: Any = None,
        resume_from_checkpoint: Any = None,
    ) -> None:
        super().__init__(**ROOM.base_arguments(locals()))
