"""Trainers: what to train, on what, and how it is kept."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trainlib._data.config import DataConfig
from trainlib._execution.backend import BackendConfig
from trainlib._importing import without_collecting
from trainlib._rooms import FUNCTION, Room
from trainlib._settings import TrainerSettings, TrainLoop, takes_config
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError, RunNotFoundError
from trainlib.result import Result

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

    from trainlib._data.sources import Source

__all__ = ["BaseTrainer", "DataParallelTrainer", "InspectedTrainer"]


class BaseTrainer:
    """What all trainers have in common. Use one of its subclasses."""

    settings: TrainerSettings
    """What this trainer is made of. It never changes."""

    restored_run: str | None = None
    """The MLflow run to continue, set by :meth:`DataParallelTrainer.restore`."""

    log_folder: str | None = None
    """The folder of its logs, below that of all runs. By default it is named after the run. ``trainlib.sgd`` numbers its runs."""

    first_checkpoint: int = 0
    """The number of the first checkpoint. ``trainlib.sgd`` counts from 1."""

    def __init__(
        self,
        *,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        self.settings = TrainerSettings.checked(
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            preprocessor=preprocessor,
            resume_from_checkpoint=resume_from_checkpoint,
        )

    @property
    def scaling_config(self) -> ScalingConfig:
        """How many workers, and what each gets."""
        return self.settings.scaling_config

    @property
    def run_config(self) -> RunConfig:
        """Where the training is kept, what is retried, and which checkpoints stay."""
        return self.settings.run_config

    @property
    def datasets(self) -> dict[str, Any]:
        """What ``get_dataset_shard(name)`` gives, by name."""
        return self.settings.datasets

    @property
    def dataset_config(self) -> DataConfig:
        """Which datasets are split across the workers."""
        return self.settings.dataset_config

    @property
    def preprocessor(self) -> Preprocessor | None:
        """What is fitted on ``train`` and applied to all datasets."""
        return self.settings.preprocessor

    @property
    def resume_from_checkpoint(self) -> Checkpoint | None:
        """What ``get_checkpoint()`` gives at first."""
        return self.settings.resume_from_checkpoint

    def inspect_data(self) -> dict[str, Source]:
        """Check that the datasets that are files exist, can be read, and have the columns and rows that are needed.

        Returns:
            What was found for each of these datasets, by name.

        Raises:
            DataError: a file is missing or unusable, or a dataset has fewer rows than workers. The message names it.
        """
        from trainlib._data.datasets import inspect_sources, require_rows, require_rows_in_memory
        from trainlib._data.preprocessors import require_columns

        require_rows_in_memory(self.datasets, self.dataset_config, self.scaling_config.num_workers)
        sources = inspect_sources(self.datasets)
        for name, source in sources.items():
            if source.rows is not None and self.dataset_config.gives_rows_to_each(name):
                require_rows(name, source.uri, source.rows, self.scaling_config.num_workers)
            if self.preprocessor is not None:
                require_columns(self.preprocessor, source.columns, f"the dataset {name!r} ({source.uri})")
        return sources

    def inspect_arguments(self) -> None:
        """Check what can be known of the arguments without data, beyond what the constructor checks.

        Raises:
            InvalidArgumentError: one of them cannot be used.
        """

    def fit(self) -> Result:
        """Train, and wait for the result."""
        raise TypeError(f"{type(self).__name__} cannot train by itself: use a trainer such as TorchTrainer")


class DataParallelTrainer(BaseTrainer):
    """Runs one training function in many processes at once.

    Example:
        >>> from trainlib import DataParallelTrainer, ScalingConfig
        >>> def train_func(config):
        ...     pass
        >>> trainer = DataParallelTrainer(
        ...     train_func, train_loop_config={"lr": 0.1}, scaling_config=ScalingConfig(num_workers=2)
        ... )
        >>> trainer.scaling_config.num_workers
        2
    """

    room: ClassVar[Room] = FUNCTION
    """The framework that is set up around the training function."""

    def __init__(
        self,
        train_loop_per_worker: TrainLoop,
        *,
        train_loop_config: dict[str, Any] | None = None,
        backend_config: BackendConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before :meth:`fit`.

        Args:
            train_loop_per_worker: the training function. It has no parameter, or one, the config.
            train_loop_config: what the training function is called with.
            backend_config: the settings of the framework to set up around the function. Default: no framework.
            scaling_config: how many workers, and what each gets.
            run_config: where the training is kept, what is retried, and which checkpoints stay.
            datasets: what ``get_dataset_shard(name)`` gives: Ray Datasets, DataFrames, Hugging Face datasets, paths or
                URIs of files, or functions that make one. ``train`` is split across the workers, the others are whole on
                each worker.
            dataset_config: which datasets are split instead.
            preprocessor: one of ``ray.data.preprocessors``. It is fitted on ``train``, applied to all datasets, and kept
                with the checkpoints.
            resume_from_checkpoint: what ``get_checkpoint()`` gives at first: a Checkpoint, a path, a URI, the id of a checkpoint, or
                a model of the registry, ``models:/NAME@ALIAS`` or ``models:/NAME/VERSION``. A dict is loaded from files of your
                own and from the registry; anything else needs ``Checkpoint.from_uri(..., trust=True)``.
        """
        takes_config(train_loop_per_worker)  # None is not a function either
        self.settings = TrainerSettings.checked(
            train_loop_per_worker=train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=backend_config,
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            preprocessor=preprocessor,
            resume_from_checkpoint=resume_from_checkpoint,
        )

    @property
    def train_loop_per_worker(self) -> TrainLoop:
        """The training function."""
        assert self.settings.train_loop_per_worker is not None
        return self.settings.train_loop_per_worker

    @property
    def train_loop_config(self) -> dict[str, Any] | None:
        """What the training function is called with."""
        return self.settings.train_loop_config

    @property
    def subject(self) -> Any:
        """What the name of an unnamed run says is trained: the training function, or what a trainer that has its own was given."""
        return self.train_loop_per_worker

    @property
    def backend_config(self) -> BackendConfig:
        """The settings of the framework that is set up around the training function."""
        return self.settings.backend_config

    def bound_function(self) -> Callable[[], Any]:
        """The training function with its config bound, so that it is called without arguments."""
        return self.settings.bound_function()

    def fit(self) -> Result:
        """Train, and wait for the result. Runs as the Prefect flow ``train``.

        Raises:
            TrainingFailedError: an attempt failed, and no retries are left. Its ``__cause__`` is what the failing rank
                raised, and its ``result`` is the Result so far, with metrics and the newest checkpoint.
        """
        with without_collecting():
            from trainlib.flows._fit import fit  # the one place where the library reaches up: a flow runs the trainer

        return fit(self)

    def inspect(self) -> InspectedTrainer:
        """Check everything that can be checked before anything starts: data, and what is sent to other processes.

        Raises:
            DataError: a dataset is missing or unusable.
            InvalidArgumentError: the training function or its config cannot be pickled.
        """
        return InspectedTrainer(trainer=self, sources=self.inspect_data(), pickled=self.settings.dumps())

    # -- the same training with other settings ------------------------------------------------------------

    def arguments(self) -> dict[str, Any]:
        """The settings, by the names of this trainer's arguments."""
        return self.settings.arguments(self.room.config_argument)

    def copy_with(self, **changes: Any) -> Self:
        """A trainer with some arguments changed. This one stays as it is.

        Example:
            >>> trainer = DataParallelTrainer(print)
            >>> trainer.copy_with(scaling_config={"num_workers": 4}).scaling_config.num_workers
            4
        """
        return self.from_settings(self.settings, **changes)

    @classmethod
    def from_settings(cls, settings: TrainerSettings, **changes: Any) -> Self:
        """A trainer with these settings, and with some arguments changed."""
        arguments = settings.arguments(cls.room.config_argument)
        if any(spelling in changes for spelling in cls.room.config_arguments):
            del arguments[cls.room.config_argument]  # it may be changed under another spelling
        return cls(**{**arguments, **changes})

    @classmethod
    def restore(cls, run: str | os.PathLike[str] | Result, **changes: Any) -> Self:
        """The trainer of an earlier training. Its ``fit()`` continues from the newest checkpoint.

        Args:
            run: the training's name, its MLflow run id, its Result, or its ``log_dir``.
            changes: arguments that are different now, e.g. ``train_loop_per_worker=`` or ``scaling_config=``.

        Raises:
            RunNotFoundError: there is no such training.
            InvalidArgumentError: another kind of trainer made it, or this trainer has no such argument.

        Example::

            result = TorchTrainer.restore("digits").fit()
        """
        import cloudpickle

        from trainlib._registry.finding import load_trainer

        known = inspect.signature(cls.__init__).parameters
        takes_more = any(
            each.kind is each.VAR_KEYWORD for each in known.values()
        )  # and says itself what it does not know
        if (unknown := changes.keys() - known.keys()) and not takes_more:
            raise InvalidArgumentError(
                f"{cls.__name__}.restore() got unknown argument(s): {', '.join(sorted(unknown))}"
            )
        name = run.run_id if isinstance(run, Result) else run
        if not name:
            raise RunNotFoundError("that Result has no run_id: it did not come from fit()")
        run_id, data = load_trainer(name)
        settings = cloudpickle.loads(data)
        if not isinstance(settings, TrainerSettings):
            raise InvalidArgumentError(f"{name!r} is a sweep: restore it with Tuner.restore({name!r})")
        if not isinstance(settings.backend_config, cls.room.config_class):
            raise InvalidArgumentError(
                f"{name!r} was trained with {settings.backend_config.framework}: restore it with the trainer that made it, "
                f"not with {cls.__name__}"
            )
        trainer = cls.from_settings(settings.unpacked(changes), **changes)
        trainer.restored_run = run_id
        return trainer


@dataclass(frozen=True)
class InspectedTrainer:
    """A trainer that can be trained: its data were found, and its settings can be sent to other processes."""

    trainer: DataParallelTrainer
    sources: dict[str, Source]
    """The datasets that are files, by name, as they were found."""
    pickled: bytes = field(repr=False)
    """The trainer's settings, for a process that continues the training."""
