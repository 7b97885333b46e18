"""A framework that exists only in these tests: its settings, its trainer and its room, as a folder would have them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from trainlib import DataParallelTrainer
from trainlib._rooms import Room
from trainlib._trainer_form import OwnArgumentsForm
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


class BoostedConfig(BackendConfig):
    """Its settings."""

    framework: ClassVar[str] = "boosted"


BOOSTED = Room(
    config_class=BoostedConfig,
    config_arguments=("boosted_config",),
    trainer=f"{__name__}:BoostedTrainer",
    form=f"{__name__}:BoostedForm",
    own_function=f"{__name__}:boost",
    own_arguments=("params", "label_column", "objective"),
)


def boost(config: dict[str, Any]) -> None:
    """Its training function."""


class BoostedForm(OwnArgumentsForm):
    """What a form asks for a trainer that has no training function."""

    room: ClassVar[Room] = BOOSTED
    kind: Literal["boosted"] = "boosted"
    params: dict[str, Any] = Field(default={})
    label_column: str = ""


class BoostedTrainer(DataParallelTrainer):
    """A trainer of boosted trees, which brings its own training function."""

    room = BOOSTED

    def __init__(
        self,
        train_loop_per_worker: Any = None,
        *,
        train_loop_config: dict[str, Any] | None = None,
        params: dict[str, Any] | None = None,
        label_column: str | None = None,
        objective: Any = None,
        boosted_config: BoostedConfig | None = None,
        scaling_config: Any = None,
        run_config: Any = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: Any = None,
        preprocessor: Any = None,
        resume_from_checkpoint: Any = None,
    ) -> None:
        super().__init__(**BOOSTED.base_arguments(locals()))
