"""What to train: what a form asks for, put together."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from trainlib._data.config import DataConfig
from trainlib._data.manifest import PreprocessedData, PreprocessedDataset
from trainlib._forms import Section, plain
from trainlib._rooms import Room
from trainlib._trainer_form import TrainerChoice, TrainerForm, form_showing
from trainlib.config import RunConfig, ScalingConfig
from trainlib.flows._secret_blocks import with_secret_blocks
from trainlib.flows._shown import shown
from trainlib.flows.forms import (
    CheckpointSection,
    DataSection,
    DatasetPaths,
    EnvironmentSection,
    FailureSection,
    RunSection,
    ScalingSection,
    located_datasets,
    run_config_of,
    scaling_config_of,
)
from trainlib.trainer import DataParallelTrainer, InspectedTrainer

__all__ = ["Prepared", "TrainSpec"]

S = TypeVar("S", bound=Section)


class Prepared(BaseModel):
    """What a pipeline has made of its data, for a trainer of any kind."""

    train: str | PreprocessedDataset
    validation: str | PreprocessedDataset
    target: str | None

    @classmethod
    def of(cls, data: PreprocessedData) -> Prepared:
        """What the task ``preprocess`` has made."""
        return cls(**data.datasets, target=data.target)

    def named_for(self, room: Room) -> dict[str, str | PreprocessedDataset]:
        """The datasets, as the room's trainer calls them."""
        return {"train": self.train, **({room.validation: self.validation} if room.validation else {})}


class TrainSpec(BaseModel):
    """What to train, on how many workers, and how it is kept.

    Example:
        >>> spec = TrainSpec(trainer={"kind": "torch", "train_loop": "trainlib.demo:train_digits"})
        >>> spec.build().backend_config.framework
        'torch'
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)  # which may be a password

    trainer: TrainerChoice = Field(description="Which trainer, and what it needs.")
    scaling_config: ScalingConfig = Field(
        default_factory=ScalingConfig, description="How many workers, and what each gets."
    )
    run_config: RunConfig = Field(
        default_factory=RunConfig,
        description="Where the training is kept, what is retried, and which checkpoints stay.",
    )
    datasets: DatasetPaths = Field(
        default_factory=dict,
        description="What get_dataset_shard gives, by name: paths or URIs of CSV, Parquet or JSON Lines files.",
    )
    dataset_config: DataConfig = Field(default_factory=DataConfig, description="How datasets reach the workers.")
    prepared: Prepared | None = Field(default=None, description="What a pipeline has made of its data.")

    @classmethod
    def of(cls, trainer: DataParallelTrainer) -> TrainSpec:
        """The form that shows a trainer of this process. :meth:`build` gives that very trainer."""
        return cls._showing(trainer, trainer)

    @classmethod
    def of_inspected(cls, inspected: InspectedTrainer) -> TrainSpec:
        """The form that shows a trainer which was inspected already, so that the flow does not do it again."""
        return cls._showing(inspected.trainer, inspected)

    @classmethod
    def _showing(cls, trainer: DataParallelTrainer, given: DataParallelTrainer | InspectedTrainer) -> TrainSpec:
        form = form_showing(trainer, shown)
        form._given = given
        return cls.model_construct(
            trainer=form,
            scaling_config=trainer.scaling_config,
            run_config=_shown_run_config(trainer.run_config),
            datasets={name: _shown_dataset(given) for name, given in trainer.datasets.items()},
            dataset_config=trainer.dataset_config,
        )

    def on(self, prepared: Prepared) -> TrainSpec:
        """The same training on what a pipeline has made of its data."""
        return TrainSpec(**{**dict(self), "prepared": prepared})

    def by(self, trainer: TrainerForm) -> TrainSpec:
        """The same training by another trainer, with which this one is compared."""
        return TrainSpec(**{**dict(self), "trainer": trainer, "scaling_config": trainer.gang_of(self.scaling_config)})

    @classmethod
    def of_parameters(
        cls,
        trainer: TrainerForm,
        num_workers: int,
        name: str,
        datasets: DatasetPaths,
        scaling_config: ScalingSection,
        run_config: RunSection,
        checkpoint_config: CheckpointSection,
        failure_config: FailureSection,
        dataset_config: DataSection,
        runtime_env: EnvironmentSection,
    ) -> TrainSpec:
        """What the parameters of a flow describe. They are explained at the flow ``train``."""
        if trainer._given is not None:
            return cls.model_construct(trainer=trainer)
        return cls(
            trainer=trainer,
            scaling_config=scaling_config_of(scaling_config, num_workers),
            run_config=run_config_of(run_config, name, checkpoint_config, failure_config, runtime_env),
            datasets=located_datasets(datasets),
            dataset_config=plain(dataset_config),
        )

    def parameters(self) -> dict[str, Any]:
        """The parameters of the flow ``train`` for a trainer of this process, for people to read in Prefect."""
        return {
            "trainer": self.trainer,
            "num_workers": self.scaling_config.num_workers,
            "name": self.run_config.name or "",
            "datasets": self.datasets,
            "scaling_config": _shown_section(ScalingSection, self.scaling_config),
            "run_config": _shown_section(RunSection, self.run_config),
            "dataset_config": _shown_section(DataSection, self.dataset_config),
        }

    def build(self) -> DataParallelTrainer:
        """The trainer that this describes.

        Raises:
            ValueError: the training function cannot be loaded.
            InvalidArgumentError: the config refers to a Secret block that does not exist.
        """
        given = self.trainer._given
        if given is not None:
            return given.trainer if isinstance(given, InspectedTrainer) else given
        trainer, datasets, room = self.trainer, self.datasets, self.trainer.room
        if self.prepared is not None:
            trainer = trainer.with_target(self.prepared.target)
            datasets = {**self.prepared.named_for(room), **datasets}
        arguments = {name: with_secret_blocks(value, name) for name, value in trainer.arguments().items()}
        return room.trainer_class()(
            **arguments,
            scaling_config=self.scaling_config,
            run_config=_with_secret_variables(self.run_config),
            datasets=datasets,
            dataset_config=self.dataset_config,
        )

    def inspected(self) -> InspectedTrainer:
        """The trainer, inspected: by ``fit()`` already, or now, in a run of a deployment.

        Raises:
            ValueError: the training function cannot be loaded.
            DataError: a dataset is missing or unusable.
        """
        given = self.trainer._given
        return given if isinstance(given, InspectedTrainer) else self.build().inspect()


def _shown_run_config(config: RunConfig) -> RunConfig:
    return config if config.stop is None else config.model_copy(update={"stop": shown(config.stop)})


def _with_secret_variables(run_config: RunConfig) -> RunConfig:
    """The same settings, with the values of Secret blocks in the variables of the runtime_env."""
    env = run_config.runtime_env
    if env is None or not env.env_vars:
        return run_config
    resolved = env.model_copy(update={"env_vars": with_secret_blocks(env.env_vars, "runtime_env['env_vars']")})
    return run_config.model_copy(update={"runtime_env": resolved})


def _shown_section(section: type[S], settings: BaseModel) -> S:
    """The section that shows settings of this process, which may be none that a form can contain."""
    values = {name: getattr(settings, name) for name in settings.model_fields_set}
    return section.model_construct(**values)  # type: ignore[return-value]


def _shown_dataset(given: Any) -> str | PreprocessedDataset:
    if isinstance(given, PreprocessedDataset):
        return given
    library = type(given).__module__.partition(".")[0]
    if library in ("ray", "pandas", "datasets"):  # to show themselves, they read rows, and show those
        return f"a {library}.{type(given).__name__}"
    return str(shown(os.fspath(given) if isinstance(given, os.PathLike) else given))
