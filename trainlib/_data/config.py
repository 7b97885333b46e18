"""Which datasets are split across the workers, and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

__all__ = ["DataConfig"]


class DataConfig(BaseModel):
    """Which datasets are split across the workers. Every worker reads the others in full.

    Example:
        >>> DataConfig(datasets_to_split=["train", "validation"]).splits("validation")
        True
        >>> DataConfig().splits("validation")
        False
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    datasets_to_split: Literal["all"] | list[str] = Field(
        default_factory=lambda: ["train"], description="Names of datasets to split across the workers, or 'all'."
    )
    equal: bool = Field(
        default=True,
        strict=True,
        description="Give each worker the same number of rows, so that none waits for another at the end of an epoch. "
        "Rows that cannot be divided equally are left out: fewer than there are workers.",
    )
    enable_shard_locality: bool = Field(
        default=True, strict=True, description="Prefer rows that are already on a worker's node."
    )
    execution_options: Annotated[Any, SkipValidation] = Field(
        default=None, exclude=True, description="Ray Data's ExecutionOptions, for all datasets or by name."
    )

    def __init__(self, datasets_to_split: Literal["all"] | list[str] | None = None, **more: Any) -> None:
        super().__init__(**({} if datasets_to_split is None else {"datasets_to_split": datasets_to_split}), **more)

    def splits(self, name: str) -> bool:
        """Whether a dataset is split across the workers."""
        return self.datasets_to_split == "all" or name in self.datasets_to_split
