"""What a form asks for a training with RLlib."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from trainlib._rooms import Room
from trainlib._trainer_form import OwnArgumentsForm
from trainlib.rl._room import ROOM

__all__ = ["RLForm"]


class RLForm(OwnArgumentsForm):
    """Trains a policy with one of RLlib's algorithms. The workers are its env runners."""

    room: ClassVar[Room] = ROOM

    kind: Literal["rl"] = "rl"
    algorithm: str = Field(
        default="PPO", description="RLlib's name of the algorithm, e.g. PPO.", json_schema_extra={"position": 0}
    )
    config: dict[str, Any] = Field(
        default={},
        description="The algorithm's settings, e.g. {'env': 'CartPole-v1', 'lr': 0.0003}. num_workers sets the number of env "
        "runners.",
        json_schema_extra={"position": 1},
    )
