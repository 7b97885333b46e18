"""What to prepare, and how, as a form."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["PreprocessSpec", "SplitSpec", "StepSpec"]


class SplitSpec(BaseModel):
    """Which rows are for training, and which for validation.

    Example:
        >>> SplitSpec(by="hash", column="customer").size
        0.2
    """

    model_config = ConfigDict(extra="forbid")

    by: Literal["shuffle", "stratify", "time", "hash"] = Field(
        default="shuffle",
        description="shuffle: at random. stratify: every class of the column has the same share in both. time: the newest "
        "rows by the column are for validation. hash: all rows with one key in the column are on the same side, "
        "whatever else is in the data.",
        json_schema_extra={"position": 0},
    )
    column: str | None = Field(
        default=None,
        description="The column of classes, of times or of keys. Default for stratify: the target.",
        json_schema_extra={"position": 1},
    )
    size: float = Field(
        default=0.2, description="The share of rows for validation, between 0 and 1.", json_schema_extra={"position": 2}
    )
    seed: int = Field(default=0, description="What a shuffle starts from.", json_schema_extra={"position": 3})

    @model_validator(mode="after")
    def _can_be_done(self) -> SplitSpec:
        if not 0.0 < self.size < 1.0:
            raise ValueError(f"size is {self.size:g}: it is the share for validation, between 0 and 1, e.g. 0.2")
        if self.column is None and self.by in ("time", "hash"):
            what = "times" if self.by == "time" else "keys"
            raise ValueError(f"splitting by {self.by} needs a column: name the one that has the {what}")
        if self.column is not None and self.by == "shuffle":
            raise ValueError(f"a shuffle needs no column, but {self.column!r} was named: leave it out, or split by it")
        return self


class StepSpec(BaseModel):
    """One of Ray Data's preprocessors, by its name.

    Example:
        >>> StepSpec(name="MinMaxScaler", columns=["age"]).preprocessor(["age", "height"]).columns
        ['age']
    """

    model_config = ConfigDict(extra="forbid")

    name: str = Field(
        description="A class of ray.data.preprocessors, e.g. StandardScaler or OneHotEncoder.",
        json_schema_extra={"position": 0},
    )
    columns: list[str] | None = Field(
        default=None,
        description="What it is applied to. Default: all columns that are numbers, without the target.",
        json_schema_extra={"position": 1},
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Its other arguments.", json_schema_extra={"position": 2}
    )

    @model_validator(mode="after")
    def _is_known(self) -> StepSpec:
        from ray.data import preprocessors

        names = sorted(set(preprocessors.__all__) - {"Chain"})  # the steps are a chain
        if self.name not in names:
            raise ValueError(f"{self.name!r} is none of Ray Data's preprocessors: {', '.join(names)}")
        return self

    def preprocessor(self, numbers: list[str]) -> Preprocessor:
        """The preprocessor; ``numbers`` are the columns that it is applied to by default."""
        from ray.data import preprocessors

        kind = getattr(preprocessors, self.name)
        columns = {"columns": self.columns or numbers} if "columns" in inspect.signature(kind).parameters else {}
        try:
            return kind(**columns, **self.options)  # type: ignore[no-any-return]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.name} cannot be made: {error}") from error


class PreprocessSpec(BaseModel):
    """What to read, how to split it, and what to apply to it.

    Example:
        >>> PreprocessSpec(source="people.csv", target="income").split.by
        'shuffle'
    """

    model_config = ConfigDict(extra="forbid")

    source: str = Field(
        min_length=1,
        description="The data: CSV, Parquet or JSON Lines files, as the path or URI of one file, a glob, or a folder.",
        json_schema_extra={"position": 0},
    )
    target: str | None = Field(
        default=None,
        description="The column to predict: it has to be there in every row, and to vary.",
        json_schema_extra={"position": 1},
    )
    split: SplitSpec = Field(
        default_factory=SplitSpec, description="What is for validation.", json_schema_extra={"position": 2}
    )
    steps: list[StepSpec] = Field(
        default_factory=list,
        description="Preprocessors, one after the other: fitted on the rows for training, applied to all.",
        json_schema_extra={"position": 3},
    )
    storage_path: str | None = Field(
        default=None,
        description="Folder or URI to store the preprocessed data in. Default: trainlib's home folder.",
        json_schema_extra={"position": 4},
    )
