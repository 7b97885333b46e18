"""What a form asks for a LightGBM training."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from trainlib._boosting.form import BoostedTreesForm
from trainlib._forms import Section
from trainlib._rooms import Room
from trainlib.lightgbm._config import LightGBMConfig
from trainlib.lightgbm._room import ROOM

__all__ = ["LightGBMForm"]


class LightGBMSection(Section, LightGBMConfig):
    """How the workers of a LightGBM training find each other."""


class LightGBMForm(BoostedTreesForm):
    """Trains boosted trees with LightGBM on all workers together."""

    room: ClassVar[Room] = ROOM

    kind: Literal["lightgbm"] = "lightgbm"
    params: dict[str, Any] = Field(
        default={},
        description="LightGBM's parameters, e.g. {'objective': 'binary', 'metric': ['binary_logloss', 'auc'], 'learning_rate': 0.1}.",
        json_schema_extra={"position": 0},
    )
    dmatrix_params: dict[str, dict[str, Any]] = Field(
        default={},
        description="Arguments of a lightgbm.Dataset by dataset, e.g. {'train': {'weight': 'column_with_weights'}}.",
        json_schema_extra={"position": 3},
    )
    lightgbm_config: LightGBMSection = Field(
        default_factory=LightGBMSection,
        title="lightgbm_config",
        description="How the workers find each other.",
        json_schema_extra={"position": 4},
    )
