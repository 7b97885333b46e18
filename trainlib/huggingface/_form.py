"""What a form asks for a TransformersTrainer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator

from trainlib._rooms import Room
from trainlib._trainable import load_trainable, path_of
from trainlib._trainer_form import TrainerForm
from trainlib.huggingface._room import ROOM
from trainlib.huggingface._trainer import takes

__all__ = ["TransformersForm"]


class TransformersForm(TrainerForm):
    """Builds a transformers.Trainer in many processes, which train one model together."""

    room: ClassVar[Room] = ROOM

    kind: Literal["huggingface"] = "huggingface"
    trainer_init_per_worker: str = Field(
        description="The function that builds the transformers.Trainer, as module:function. It is marked with "
        "@trainlib.trainable, or its module is allowed where the flow runs.",
        json_schema_extra={"position": 0},
    )
    trainer_init_config: dict[str, Any] = Field(
        default={},
        description="What the function is called with by keywords. Prefect stores it as it is: instead of a password, write "
        "{{ prefect.blocks.secret.NAME }}, which refers to a Secret block.",
        json_schema_extra={"position": 1},
    )

    @field_validator("trainer_init_per_worker")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        if not re.fullmatch(r"[\w.]+:[\w.<>]+", path):
            raise ValueError(
                f"trainer_init_per_worker is {path[:200]!r}: write it as module:function, e.g. my_package.text:make_trainer"
            )
        return path

    def arguments(self) -> dict[str, Any]:
        return {
            "trainer_init_per_worker": load_trainable(self.trainer_init_per_worker, "trainer_init_per_worker"),
            "trainer_init_config": self.trainer_init_config,
        }

    def with_target(self, target: str | None) -> Self:
        """The same trainer. Its function is called with the target, if it takes that."""
        if not target or not takes(self.arguments()["trainer_init_per_worker"], "target"):
            return self
        return self.model_copy(update={"trainer_init_config": {"target": target, **self.trainer_init_config}})

    @classmethod
    def showing(cls, trainer: Any, shown: Callable[[Any], Any]) -> Self:
        own = trainer.train_loop_config or {}
        return cls.model_construct(  # type: ignore[return-value]
            trainer_init_per_worker=path_of(own["trainer_init_per_worker"]),
            trainer_init_config=shown(dict(own.get("trainer_init_config") or {})),
        )
