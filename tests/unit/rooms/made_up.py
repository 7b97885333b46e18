"""A framework that exists only in these tests: its settings, its trainer and its room, as a folder would have them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from trainlib import DataParallelTrainer
from trainlib._rooms import Room
from trainlib._trainer_form import TrainerForm
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


class BoostedForm(TrainerForm):
    """What a form asks for a trainer that has no training function."""

    kind: Literal["boosted"] = "boosted"
    params: dict[str, Any] = Field(default={})
    label_column: str = ""

    def arguments(self) -> dict[str, Any]:
        return {"params": self.params, "label_column": self.label_column}

    def with_target(self, target: str | None) -> Self:
        return self.model_copy(update={"label_column": self.label_column or target})


class BoostedConfig(BackendConfig):
    """Its settings."""

    framework: ClassVar[str] = "boosted"


BOOSTED = Room(
    config_class=BoostedConfig,
    config_arguments=("backend_config",),
    trainer=f"{__name__}:BoostedTrainer",
    form=f"{__name__}:BoostedForm",
)
BoostedForm.room = BOOSTED


class BoostedTrainer(DataParallelTrainer):
    """A trainer of boosted trees, which brings its own training function."""

    room = BOOSTED

    def __init__(self, *, params: dict[str, Any], label_column: str, **common: Any) -> None:
        super().__init__(print, train_loop_config={**params, "label": label_column}, **common)
