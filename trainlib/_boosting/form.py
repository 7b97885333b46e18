"""What the forms of XGBoost's and LightGBM's trainers both ask for."""

from __future__ import annotations

from pydantic import Field

from trainlib._trainer_form import OwnArgumentsForm

__all__ = ["BoostedTreesForm"]


class BoostedTreesForm(OwnArgumentsForm):
    """What does not depend on the library. Its parameters come before these fields, and its own settings after them."""

    label_column: str = Field(
        default="",
        description="The column to predict. In a pipeline: empty for the target of its data.",
        json_schema_extra={"position": 1},
    )
    num_boost_round: int = Field(
        default=10, ge=1, description="How many rounds of boosting.", json_schema_extra={"position": 2}
    )
    early_stopping_rounds: int | None = Field(
        default=None,
        ge=1,
        description="End when the metrics have not improved for so many rounds. Empty: train all rounds.",
        json_schema_extra={"position": 5},
    )
