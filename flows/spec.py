"""What to train, as a form."""

from __future__ import annotations

import importlib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from trainlib._data.config import DataConfig
from trainlib._data.manifest import PreprocessedData
from trainlib._frameworks import trainers
from trainlib.config import RunConfig, ScalingConfig
from trainlib.trainer import DataParallelTrainer

__all__ = ["TrainSpec"]


class TrainSpec(BaseModel):
    """What to train, on how many workers, and how it is kept.

    Example:
        >>> TrainSpec(train_loop="trainlib.demo:train_digits").framework
        'torch'
    """

    model_config = ConfigDict(extra="forbid")

    train_loop: str = Field(
        pattern=r"^[\w.]+:[\w.<>]+$",
        description="The training function, as module:function.",
        json_schema_extra={"position": 0},
    )
    framework: Literal["torch", "tensorflow", "horovod", "function"] = Field(
        default="torch", description="What is set up around it.", json_schema_extra={"position": 1}
    )
    train_loop_config: dict[str, Any] = Field(
        default_factory=dict, description="What it is called with.", json_schema_extra={"position": 2}
    )
    scaling_config: ScalingConfig = Field(
        default_factory=ScalingConfig, description="How many workers.", json_schema_extra={"position": 3}
    )
    run_config: RunConfig = Field(
        default_factory=RunConfig, description="How it is kept.", json_schema_extra={"position": 4}
    )
    datasets: dict[str, str] = Field(
        default_factory=dict,
        description="What get_dataset_shard gives, by name: paths or URIs of CSV, Parquet or JSON Lines files. train is "
        "split across the workers, others are whole on each.",
        json_schema_extra={"position": 5},
    )
    dataset_config: DataConfig = Field(
        default_factory=DataConfig, description="How datasets reach the workers.", json_schema_extra={"position": 6}
    )

    _trainer: DataParallelTrainer | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, trainer: DataParallelTrainer) -> TrainSpec:
        """Of a trainer in this process, which is then run as it is; the fields tell people what it is."""
        function = trainer.train_loop_per_worker
        module = getattr(function, "__module__", None) or "__main__"
        name = getattr(function, "__qualname__", None) or type(function).__name__
        spec = cls.model_construct(
            train_loop=f"{module}:{name}",
            framework=trainer.backend_config.framework,  # type: ignore[arg-type]
            train_loop_config={key: shown(value) for key, value in (trainer.train_loop_config or {}).items()},
            scaling_config=trainer.scaling_config,
            run_config=trainer.run_config.model_copy(update={"stop": shown(trainer.run_config.stop)}),
            datasets={name: str(shown(given)) for name, given in trainer.datasets.items()},
            dataset_config=trainer.dataset_config,
        )
        spec._trainer = trainer
        return spec

    def on(self, data: PreprocessedData) -> TrainSpec:
        """The same, on prepared data."""
        config = {"target": data.target, **self.train_loop_config}
        return TrainSpec(**{**dict(self), "datasets": {**data.datasets, **self.datasets}, "train_loop_config": config})

    def trainer(self) -> DataParallelTrainer:
        """The trainer that this describes.

        Raises:
            ValueError: there is no such function.
        """
        if self._trainer is None:
            self._trainer = trainers()[self.framework](
                _load(self.train_loop),
                train_loop_config=self.train_loop_config,
                scaling_config=self.scaling_config,
                run_config=self.run_config,
                datasets=self.datasets,
                dataset_config=self.dataset_config,
            )
        return self._trainer


def _load(path: str) -> Any:
    module_name, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"train_loop is {path!r}, but it cannot be loaded ({error}): write it as module:function, of a module that "
            "can be imported where the flow runs"
        ) from error
    return found


def shown(value: Any) -> Any:
    """A value as it can stand in a form: plain data as it is, anything else by its looks."""
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)[:200]
