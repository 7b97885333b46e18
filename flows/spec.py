"""What to train, as a form."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator

from trainlib import _rooms as rooms
from trainlib._data.config import DataConfig
from trainlib._data.manifest import PreprocessedData, PreprocessedDataset
from trainlib._trainable import load_trainable
from trainlib.config import RunConfig, ScalingConfig
from trainlib.flows._shown import shown
from trainlib.trainer import DataParallelTrainer, InspectedTrainer

__all__ = ["TrainSpec"]


def _choose_framework(schema: dict[str, Any]) -> None:
    """Make the form's field a dropdown of the frameworks that there are."""
    schema.update(enum=rooms.choices(), position=1)


class TrainSpec(BaseModel):
    """What to train, on how many workers, and how it is kept.

    Example:
        >>> TrainSpec(train_loop="trainlib.demo:train_digits").framework
        'torch'
    """

    model_config = ConfigDict(extra="forbid")

    train_loop: str = Field(
        pattern=r"^[\w.]+:[\w.<>]+$",
        description="The training function, as module:function. It is marked with @trainlib.trainable, or its module is "
        "allowed where the flow runs.",
        json_schema_extra={"position": 0},
    )
    framework: str = Field(
        default="torch",
        description="The framework to set up around the training function; 'function' sets up none.",
        json_schema_extra=_choose_framework,
    )
    train_loop_config: dict[str, Any] = Field(
        default_factory=dict,
        description="What the training function is called with.",
        json_schema_extra={"position": 2},
    )
    scaling_config: ScalingConfig = Field(
        default_factory=ScalingConfig,
        description="How many workers, and what each gets.",
        json_schema_extra={"position": 3},
    )
    run_config: RunConfig = Field(
        default_factory=RunConfig,
        description="Where the training is kept, what is retried, and which checkpoints stay.",
        json_schema_extra={"position": 4},
    )
    datasets: dict[str, str | PreprocessedDataset] = Field(
        default_factory=dict,
        description="What get_dataset_shard gives, by name: paths or URIs of CSV, Parquet or JSON Lines files. 'train' is "
        "split across the workers, the others are whole on each worker.",
        json_schema_extra={"position": 5},
    )
    dataset_config: DataConfig = Field(
        default_factory=DataConfig, description="How datasets reach the workers.", json_schema_extra={"position": 6}
    )

    _trainer: DataParallelTrainer | None = PrivateAttr(default=None)
    _inspected: InspectedTrainer | None = PrivateAttr(default=None)

    @field_validator("framework")
    @classmethod
    def _framework_exists(cls, value: str) -> str:
        if value not in rooms.choices():
            raise ValueError(f"framework is {value!r}: choose one of {', '.join(rooms.choices())}")
        return value

    @classmethod
    def of(cls, trainer: DataParallelTrainer) -> TrainSpec:
        """The form that shows a trainer of this process. :meth:`trainer` gives that very trainer."""
        function = trainer.train_loop_per_worker
        module = getattr(function, "__module__", None) or "__main__"
        name = getattr(function, "__qualname__", None) or type(function).__name__
        spec = cls.model_construct(
            train_loop=f"{module}:{name}",
            framework=trainer.backend_config.framework,
            train_loop_config=shown(dict(trainer.train_loop_config or {})),
            scaling_config=trainer.scaling_config,
            run_config=trainer.run_config.model_copy(update={"stop": shown(trainer.run_config.stop)}),
            datasets={name: _shown_dataset(given) for name, given in trainer.datasets.items()},
            dataset_config=trainer.dataset_config,
        )
        spec._trainer = trainer
        return spec

    @classmethod
    def of_inspected(cls, inspected: InspectedTrainer) -> TrainSpec:
        """The form that shows a trainer which was inspected already, so that the flow does not do it again."""
        spec = cls.of(inspected.trainer)
        spec._inspected = inspected
        return spec

    def on(self, data: PreprocessedData) -> TrainSpec:
        """The same training on preprocessed data."""
        config = {"target": data.target, **self.train_loop_config}
        return TrainSpec(**{**dict(self), "datasets": {**data.datasets, **self.datasets}, "train_loop_config": config})

    def trainer(self) -> DataParallelTrainer:
        """The trainer that this form describes.

        Raises:
            ValueError: the training function cannot be loaded.
        """
        if self._trainer is None:
            self._trainer = rooms.load(self.framework).trainer_class()(
                load_trainable(self.train_loop),
                train_loop_config=self.train_loop_config,
                scaling_config=self.scaling_config,
                run_config=self.run_config,
                datasets=self.datasets,
                dataset_config=self.dataset_config,
            )
        return self._trainer

    def inspected(self) -> InspectedTrainer:
        """The trainer, inspected: by ``fit()`` already, or now, in a run of a deployment.

        Raises:
            ValueError: the training function cannot be loaded.
            DataError: a dataset is missing or unusable.
        """
        return self._inspected or self.trainer().inspect()


def _shown_dataset(given: Any) -> str | PreprocessedDataset:
    if isinstance(given, PreprocessedDataset):
        return given
    return os.fspath(given) if isinstance(given, os.PathLike) else str(shown(given))
