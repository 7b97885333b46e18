"""Trainers: what to train, on what, and how it is kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.errors import RunNotFoundError
from trainlib.execution.backend import BackendConfig
from trainlib.result import Result

__all__ = ["BaseTrainer", "DataParallelTrainer"]

TrainLoop = Callable[[], Any] | Callable[[dict[str, Any]], Any]


class BaseTrainer:
    """What all trainers have in common. Use one of its subclasses."""

    def __init__(
        self,
        *,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
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
        resume_from_checkpoint: Checkpoint | None = None,
    ) -> None:
        """A trainer.

        Args:
            train_loop_per_worker: the training function, with no parameter or one, the config.
            train_loop_config: what it is called with.
            backend_config: the framework to set up around it. Default: none.
            scaling_config: how many workers, and what each gets.
            run_config: where it is kept, what is retried, which checkpoints stay.
            resume_from_checkpoint: what ``get_checkpoint()`` gives at first.
        """
        super().__init__(
            scaling_config=scaling_config, run_config=run_config, resume_from_checkpoint=resume_from_checkpoint
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
        from flows.fit import fit  # the one place where the library reaches up: a flow runs the trainer

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

        from trainlib.registry.run import load_trainer

        name = run.run_id if isinstance(run, Result) else run
        if not name:
            raise RunNotFoundError("that Result has no run_id: it did not come from fit()")
        run_id, data = load_trainer(name)
        settings = cloudpickle.loads(data)
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

        settings = self._settings()
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
    if isinstance(value, model):
        return value
    if isinstance(value, dict):
        return model(**value)
    raise TypeError(f"{name} is a {type(value).__name__}: pass a {model.__name__}")


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
