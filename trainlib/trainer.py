"""Trainers: what to train, on what, and how it is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from trainlib._data.config import DataConfig
from trainlib._execution.backend import BackendConfig
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig, require_values
from trainlib.errors import RunNotFoundError
from trainlib.result import Result

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

    from trainlib._data.sources import Source

__all__ = ["BaseTrainer", "DataParallelTrainer"]

TrainLoop = Callable[[], Any] | Callable[[dict[str, Any]], Any]


class BaseTrainer:
    """What all trainers have in common. Use one of its subclasses."""

    def __init__(
        self,
        *,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        self.datasets, self.dataset_config = _as_datasets(datasets, dataset_config)
        self.preprocessor = _as_preprocessor(preprocessor, self.datasets)
        self.scaling_config = _as_config(ScalingConfig, scaling_config, "scaling_config")
        self.run_config = _as_config(RunConfig, run_config, "run_config")
        if resume_from_checkpoint is not None:
            if not isinstance(resume_from_checkpoint, Checkpoint):
                raise TypeError(
                    f"resume_from_checkpoint is a {type(resume_from_checkpoint).__name__}: pass a trainlib.Checkpoint, "
                    "e.g. Checkpoint.from_directory(path) or result.checkpoint"
                )
            resume_from_checkpoint.require()
        self.resume_from_checkpoint = resume_from_checkpoint
        self.restored_run: str | None = None
        """The MLflow run to continue, set by :meth:`restore`."""
        self._sources: dict[str, Source] | None = None

    def look_at_data(self) -> dict[str, Source]:
        """The datasets that are files, looked at anew: that they are there, can be read, and belong together.

        Raises:
            DataError: what is wrong, and with which file.
        """
        from trainlib._data.datasets import look_at_all, require_rows
        from trainlib._data.preprocessors import require_columns

        sources = look_at_all(self.datasets)
        for name, source in sources.items():
            if source.rows is not None and self.dataset_config.splits(name):
                require_rows(name, source.uri, source.rows, self.scaling_config.num_workers)
            if self.preprocessor is not None:
                require_columns(self.preprocessor, source.columns, f"the dataset {name!r} ({source.uri})")
        self._sources = sources
        return sources

    @property
    def sources(self) -> dict[str, Source]:
        """The datasets that are files, as they were when they were looked at last."""
        return self.look_at_data() if self._sources is None else self._sources

    def fit(self) -> Result:
        """Train, and wait for it."""
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

    _backend_argument: ClassVar[str] = "backend_config"
    """The argument that takes the framework's settings."""

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
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        """A trainer.

        Args:
            train_loop_per_worker: the training function, with no parameter or one, the config.
            train_loop_config: what it is called with.
            backend_config: the framework to set up around it. Default: none.
            scaling_config: how many workers, and what each gets.
            run_config: where it is kept, what is retried, which checkpoints stay.
            datasets: what ``get_dataset_shard(name)`` gives: Ray Datasets, DataFrames, Hugging Face datasets, paths or
                URIs of files, or functions that make one. ``train`` is split across the workers, others are whole.
            dataset_config: which datasets are split instead.
            preprocessor: one of ``ray.data.preprocessors``; fitted on ``train``, applied to all, kept with checkpoints.
            resume_from_checkpoint: what ``get_checkpoint()`` gives at first.
        """
        super().__init__(
            scaling_config=scaling_config,
            run_config=run_config,
            datasets=datasets,
            dataset_config=dataset_config,
            preprocessor=preprocessor,
            resume_from_checkpoint=resume_from_checkpoint,
        )
        self._takes_config = _takes_config(train_loop_per_worker)
        if train_loop_config is not None and not isinstance(train_loop_config, dict):
            raise TypeError(f"train_loop_config is a {type(train_loop_config).__name__}: pass a dict")
        if backend_config is not None and not isinstance(backend_config, BackendConfig):
            raise TypeError(
                f"backend_config is a {type(backend_config).__name__}: pass a BackendConfig, e.g. TorchConfig()"
            )
        self.train_loop_per_worker = train_loop_per_worker
        self.train_loop_config = train_loop_config
        self.backend_config = backend_config or BackendConfig()

    def fit(self) -> Result:
        """Train, and wait for it. Runs as the Prefect flow ``train``.

        Raises:
            TrainingFailedError: an attempt failed and the failure budget is spent. Its ``__cause__`` is what
                the failing rank raised.
        """
        from trainlib.flows.fit import fit  # the one place where the library reaches up: a flow runs the trainer

        return fit(self)

    def bound_function(self) -> Callable[[], Any]:
        """The training function, called with its config."""
        function: Any = self.train_loop_per_worker
        if not self._takes_config:
            return function  # type: ignore[no-any-return]
        config = dict(self.train_loop_config or {})
        return lambda: function(config)

    # -- continuing a training whose process is gone -----------------------------------------------------

    @classmethod
    def restore(cls, run: str | Result, **changes: Any) -> Self:
        """The trainer of an earlier training, to be continued: ``fit()`` goes on from its newest checkpoint.

        Args:
            run: its name, its MLflow run id, or its Result.
            changes: what is to be different, e.g. ``train_loop_per_worker=`` or ``scaling_config=``.

        Example::

            result = TorchTrainer.restore("digits").fit()
        """
        import cloudpickle

        from trainlib._data.portable import unpacked
        from trainlib._registry.finding import load_trainer

        name = run.run_id if isinstance(run, Result) else run
        if not name:
            raise RunNotFoundError("that Result has no run_id: it did not come from fit()")
        run_id, data = load_trainer(name)
        settings = cloudpickle.loads(data)
        if "datasets" not in changes:
            settings["datasets"] = unpacked(settings.get("datasets"))
        known = set(inspect.signature(cls.__init__).parameters)
        if unknown := changes.keys() - known:
            raise TypeError(f"{cls.__name__}.restore() got unknown argument(s): {', '.join(sorted(unknown))}")
        if foreign := settings.keys() - known:
            raise TypeError(f"that training has {', '.join(sorted(foreign))}: restore it with the trainer that made it")
        trainer = cls(**{**settings, **changes})
        trainer.restored_run = run_id
        return trainer

    def dumps(self) -> bytes:
        """What :meth:`restore` needs in another process. Callbacks belong to this one and are left out.

        Raises:
            TypeError: the training function or its config cannot be sent to another process.
        """
        import cloudpickle

        from trainlib._data.portable import packed

        settings = self._settings()
        settings["datasets"] = packed(self.datasets)
        settings["run_config"] = self.run_config.model_copy(update={"callbacks": None})
        try:
            return cloudpickle.dumps(settings)  # type: ignore[no-any-return]
        except Exception as error:  # pickling runs the code of whatever is pickled
            name = getattr(self.train_loop_per_worker, "__name__", repr(self.train_loop_per_worker))
            raise TypeError(
                f"the training function {name} or its config cannot be sent to the workers: {error}. Create such objects "
                "inside the function, or pass what they are made of."
            ) from error

    def _settings(self) -> dict[str, Any]:
        """The arguments that make this trainer again."""
        return {
            "train_loop_per_worker": self.train_loop_per_worker,
            "train_loop_config": self.train_loop_config,
            self._backend_argument: self.backend_config,
            "scaling_config": self.scaling_config,
            "run_config": self.run_config,
            "datasets": self.datasets,
            "dataset_config": self.dataset_config,
            "preprocessor": self.preprocessor,
            "resume_from_checkpoint": self.resume_from_checkpoint,
        }


C = TypeVar("C", bound=BackendConfig)


def backend_config_of(kind: type[C], **spellings: C | None) -> C:
    """A framework's settings, from the one argument that was given of several that mean the same."""
    given = {name: value for name, value in spellings.items() if value is not None}
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)} are the same argument: pass one of them")
    for name, value in given.items():
        if not isinstance(value, kind):
            raise TypeError(f"{name} is a {type(value).__name__}: pass a {kind.__name__}")
        return value
    return kind()


def _as_config(model: Any, value: Any, name: str) -> Any:
    if value is None:
        return model()
    if isinstance(value, dict):
        value = model(**value)
    if isinstance(value, model):
        require_values(value, name)
        return value
    raise TypeError(f"{name} is a {type(value).__name__}: pass a {model.__name__}")


def _as_datasets(datasets: Any, config: Any) -> tuple[dict[str, Any], DataConfig]:
    from trainlib._data.datasets import require_dataset

    if datasets is not None and not isinstance(datasets, dict):
        raise TypeError(f"datasets is a {type(datasets).__name__}: pass a dict, e.g. {{'train': ...}}")
    for name, given in (datasets or {}).items():
        require_dataset(name, given)
    config = _as_config(DataConfig, config, "dataset_config")
    named = config.datasets_to_split if "datasets_to_split" in config.model_fields_set else []
    if named != "all" and (unknown := [name for name in named if name not in (datasets or {})]):
        raise ValueError(
            f"datasets_to_split names {', '.join(map(repr, unknown))}, but the datasets are "
            f"{', '.join(map(repr, datasets or {})) or 'none'}"
        )
    return dict(datasets or {}), config


def _as_preprocessor(preprocessor: Any, datasets: dict[str, Any]) -> Any:
    if preprocessor is None:
        return None
    from trainlib._data.preprocessors import is_fitted, require_preprocessor

    require_preprocessor(preprocessor)
    if not datasets:
        raise ValueError("a preprocessor was passed, but no datasets that it could be applied to: pass datasets={...}")
    if "train" not in datasets and not is_fitted(preprocessor):
        raise ValueError(
            "the preprocessor is fitted on datasets['train'], which there is not: pass it, or fit it before"
        )
    return preprocessor


def _takes_config(function: Any) -> bool:
    """Whether a training function takes the config. It has no parameter or one; anything else is an error."""
    if not callable(function):
        raise TypeError(f"train_loop_per_worker is a {type(function).__name__}: pass a function")
    parameters = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]
    if len(required) > 1:
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"the training function {name}({', '.join(p.name for p in parameters)}) takes {len(required)} parameters: it "
            "is called with none, or with one, the config. Put the others into train_loop_config."
        )
    return len(parameters) > 0
