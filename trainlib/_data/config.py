"""Which datasets are split across the workers, and how."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

if TYPE_CHECKING:
    from ray.data import DataIterator, Dataset, ExecutionOptions

__all__ = ["DataConfig"]


class DataConfig(BaseModel):
    """Which datasets are split across the workers. Every worker reads the others in full.

    A subclass with its own :meth:`configure` hands out the data in any other way.

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
        "Rows that cannot be divided equally are left out: fewer than there are workers. If False, they go to the first workers, one each.",
    )
    enable_shard_locality: bool = Field(
        default=True, strict=True, description="Prefer rows that are already on a worker's node."
    )
    execution_options: Annotated[Any, SkipValidation] = Field(
        default=None, exclude=True, description="Ray Data's ExecutionOptions, for all datasets or by name."
    )

    def __init__(self, datasets_to_split: Literal["all"] | list[str] | None = None, **more: Any) -> None:
        super().__init__(**({} if datasets_to_split is None else {"datasets_to_split": datasets_to_split}), **more)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        # Pydantic keeps the variables around a class that is defined in a function. They would be sent to the workers with it.
        cls.__pydantic_parent_namespace__ = None

    def __setattr__(self, name: str, value: Any) -> None:
        """A subclass that hands out the data may have any attributes, without declaring them as fields."""
        if self.is_custom and name not in type(self).model_fields and name[:1] != "_":
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def configure(
        self,
        datasets: dict[str, Dataset],
        world_size: int,
        worker_handles: list[Any] | None,
        worker_node_ids: list[str] | None,
        **kwargs: Any,
    ) -> list[dict[str, DataIterator]]:
        """Say which worker reads what. A subclass may override this.

        Args:
            datasets: What the trainer was given, preprocessed.
            world_size: How many workers there are.
            worker_handles: Their actors in Ray, by rank.
            worker_node_ids: Their nodes, by rank.
            **kwargs: For later.

        Returns:
            For each rank, an iterator or a Ray Dataset by name: what ``get_dataset_shard(name)`` gives there.

        Example:
            A config that gives every worker all rows, in an order of its own::

                class Shuffled(DataConfig):
                    def configure(self, datasets, world_size, worker_handles, worker_node_ids, **kwargs):
                        train = datasets["train"]
                        return [{"train": train.random_shuffle(seed=rank)} for rank in range(world_size)]
        """
        shards: list[dict[str, DataIterator]] = [{} for _ in range(world_size)]
        for name, dataset in datasets.items():
            if self.splits(name):
                hints: Any = worker_node_ids if self.enable_shard_locality else None
                parts = _split(dataset, world_size, hints, equal=self.equal)
            else:
                parts = [dataset.iterator() for _ in range(world_size)]
            for of_rank, part in zip(shards, parts, strict=True):
                of_rank[name] = part
        return shards

    @staticmethod
    def default_ingest_options() -> ExecutionOptions:
        """The options that datasets are read with where ``execution_options`` has none: those of Ray Data's context.

        A copy, so that it can be changed and passed as ``execution_options``. A subclass may override this.
        """
        from ray.data import DataContext

        return copy.deepcopy(DataContext.get_current().execution_options)

    def options_for(self, name: str) -> ExecutionOptions | None:
        """The options to read a dataset with; None for the dataset's own."""
        given = self.execution_options
        of_name = given.get(name) if isinstance(given, dict) else given
        if of_name is None and self._is_overridden("default_ingest_options"):
            return self.default_ingest_options()
        return of_name  # type: ignore[no-any-return]

    @property
    def is_custom(self) -> bool:
        """Whether a subclass hands out the data: then nothing is known of who gets which rows."""
        return self._is_overridden("configure")

    def gives_rows_to_each(self, name: str) -> bool:
        """Whether every worker is to have rows of its own of a dataset."""
        return self.splits(name) and not self.is_custom

    def _is_overridden(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(DataConfig, method)

    def splits(self, name: str) -> bool:
        """Whether a dataset is split across the workers."""
        return self.datasets_to_split == "all" or name in self.datasets_to_split


def _split(dataset: Dataset, workers: int, hints: list[str] | None, *, equal: bool) -> list[DataIterator]:
    if equal:
        return dataset.streaming_split(workers, equal=True, locality_hints=hints)
    from trainlib._data.even_split import split_evenly

    return split_evenly(dataset, workers, locality_hints=hints)
