"""What to prepare, and how, as a form."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from trainlib._bounds import LARGEST_SEED
from trainlib._secrets import require_no_password

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["STEPS", "PreprocessSpec", "SplitSpec", "StepSpec"]


# Those of Ray Data's preprocessors that a form offers. One more needs a function, which a form cannot contain.
STEPS = (
    "StandardScaler",
    "MinMaxScaler",
    "MaxAbsScaler",
    "RobustScaler",
    "Normalizer",
    "PowerTransformer",
    "SimpleImputer",
    "OneHotEncoder",
    "OrdinalEncoder",
    "MultiHotEncoder",
    "LabelEncoder",
    "Categorizer",
    "Concatenator",
    "UniformKBinsDiscretizer",
    "CustomKBinsDiscretizer",
    "Tokenizer",
    "CountVectorizer",
    "HashingVectorizer",
    "FeatureHasher",
)


class SplitSpec(BaseModel):
    """Which rows are for training, which for validation, and which are held out for a test.

    Example:
        >>> SplitSpec(by="hash", column="customer").size
        0.2
    """

    model_config = ConfigDict(extra="forbid")

    by: Literal["shuffle", "stratify", "time", "hash"] = Field(
        default="shuffle",
        description="shuffle: at random. stratify: every class of the column has the same share in all parts. time: the newest "
        "rows by the column are for the test, those before for validation. hash: all rows with one key in the column are in "
        "the same part, whatever else is in the data.",
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
    seed: int = Field(
        default=0, ge=0, le=LARGEST_SEED, description="What a shuffle starts from.", json_schema_extra={"position": 3}
    )
    test_size: float = Field(
        default=0.0,
        description="The share of rows that are held out: neither training nor the selection of checkpoints sees them. 0 holds "
        "out none.",
        json_schema_extra={"position": 4},
    )

    @property
    def summary(self) -> str:
        """How it splits, in words.

        Example:
            >>> SplitSpec().summary
            'shuffle, 20% for validation, seed 0'
        """
        column = f" {self.column}" if self.column is not None else ""
        seed = f", seed {self.seed}" if self.by in ("shuffle", "stratify") else ""
        test = f", {self.test_size:.0%} for the test" if self.test_size else ""
        return f"{self.by}{column}, {self.size:.0%} for validation{test}{seed}"

    @model_validator(mode="after")
    def _can_be_done(self) -> SplitSpec:
        if not 0.0 < self.size < 1.0:
            raise ValueError(f"size is {self.size:g}: it is the share for validation, between 0 and 1, e.g. 0.2")
        if not 0.0 <= self.test_size < 1.0:
            raise ValueError(
                f"test_size is {self.test_size:g}: it is the share of rows held out, e.g. 0.1, or 0 for none"
            )
        if self.size + self.test_size >= 1.0:
            raise ValueError(
                f"size is {self.size:g} and test_size is {self.test_size:g}, which leaves no rows for training: lower one of them"
            )
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
        json_schema_extra={"position": 0, "enum": list(STEPS)},
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

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)  # which may be a password

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

    @field_validator("source", "storage_path")
    @classmethod
    def _has_no_password(cls, value: str | None) -> str | None:
        return require_no_password(value) if value is not None else None
