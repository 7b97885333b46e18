"""What a form asks for an XGBoost training."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from trainlib._boosting.form import BoostedTreesForm
from trainlib._forms import Section
from trainlib._rooms import Room
from trainlib.xgboost._config import XGBoostConfig
from trainlib.xgboost._room import ROOM

__all__ = ["XGBoostForm"]


class XGBoostSection(Section, XGBoostConfig):
    """How the workers of an XGBoost training find each other."""


class XGBoostForm(BoostedTreesForm):
    """Trains boosted trees with XGBoost on all workers together."""

    room: ClassVar[Room] = ROOM

    kind: Literal["xgboost"] = "xgboost"
    params: dict[str, Any] = Field(
        default={},
        description="XGBoost's parameters, e.g. {'objective': 'binary:logistic', 'eval_metric': ['logloss', 'error'], 'eta': 0.1}.",
        json_schema_extra={"position": 0},
    )
    dmatrix_params: dict[str, dict[str, Any]] = Field(
        default={},
        description="Arguments of a DMatrix by dataset, e.g. {'train': {'weight': 'column_with_weights'}}.",
        json_schema_extra={"position": 3},
    )
    xgboost_config: XGBoostSection = Field(
        default_factory=XGBoostSection,
        title="xgboost_config",
        description="How the workers find each other.",
        json_schema_extra={"position": 4},
    )
