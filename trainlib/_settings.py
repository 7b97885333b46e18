"""What a trainer is made of, as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib._execution.backend import BackendConfig
from trainlib._given_checkpoint import checkpoint_to_resume
from trainlib._ray_objects import described, settings_from_ray
from trainlib._rooms import room_of, taken_from_ray
from trainlib._secrets import hidden_in, without_secrets
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig, RunConfig, ScalingConfig, require_values
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["TrainLoop", "TrainerSettings"]

TrainLoop = Callable[[], Any] | Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, kw_only=True)
class TrainerSettings:
    """What to train, on what, and how it is kept. The fields have the names of DataParallelTrainer's arguments.

    A trainer never changes its settings. Whoever needs other ones, such as a trial of a sweep, makes another trainer.

    Example:
        >>> settings = TrainerSettings.checked(scaling_config={"num_workers": 2})
        >>> settings.scaling_config.num_workers, settings.datasets
        (2, {})
    """

    train_loop_per_worker: TrainLoop | None = None
    """The training function. None for a BaseTrainer, which has none."""
    train_loop_config: dict[str, Any] | None = None
    backend_config: BackendConfig
    scaling_config: ScalingConfig
    run_config: RunConfig
    datasets: dict[str, Any]
    dataset_config: DataConfig
    preprocessor: Preprocessor | None = None
    resume_from_checkpoint: Checkpoint | None = None

    @classmethod
    def checked(
        cls,
        *,
        train_loop_per_worker: Any = None,
        train_loop_config: Any = None,
        backend_config: Any = None,
        scaling_config: Any = None,
        run_config: Any = None,
        datasets: Any = None,
        dataset_config: Any = None,
        preprocessor: Any = None,
        resume_from_checkpoint: Any = None,
    ) -> TrainerSettings:
        """The settings, from arguments as a user passes them. Dicts become configs, and defaults are filled in.

        Raises:
            InvalidArgumentError: an argument has the wrong type.
            ValueError: an argument has a value that cannot be used.
            CheckpointNotFoundError: there is nothing at the checkpoint's location.
        """
        if train_loop_per_worker is not None:
            takes_config(train_loop_per_worker)
        _require_type(train_loop_config, dict, "train_loop_config", "a dict")
        _require_no_circle(train_loop_config, ())
        backend_config = taken_from_ray(backend_config)
        _require_type(
            backend_config, BackendConfig, "backend_config", "a trainlib.execution.BackendConfig, e.g. TorchConfig()"
        )
        _require_type(datasets, dict, "datasets", "a dict, e.g. {'train': ...}")
        settings = cls(
            train_loop_per_worker=train_loop_per_worker,
            train_loop_config=train_loop_config,
            backend_config=backend_config or BackendConfig(),
            scaling_config=_as_config(ScalingConfig, scaling_config, "scaling_config"),
            run_config=_as_config(RunConfig, run_config, "run_config"),
            datasets=dict(datasets or {}),
            dataset_config=_as_config(DataConfig, dataset_config, "dataset_config"),
            preprocessor=preprocessor,
            resume_from_checkpoint=checkpoint_to_resume(resume_from_checkpoint, "resume_from_checkpoint"),
        )
        if not settings.has_own_function:
            _require_no_cadence(settings.run_config.checkpoint_config)
        if (runtime_env := settings.gang.runtime_env) is not None:
            runtime_env.require_secrets()
        settings._require_datasets()
        settings._require_preprocessor()
        settings._require_checkpoint()
        return settings

    def _require_datasets(self) -> None:
        from trainlib._data.datasets import require_dataset

        for name, given in self.datasets.items():
            require_dataset(name, given)
        config = self.dataset_config
        named = config.datasets_to_split if "datasets_to_split" in config.model_fields_set else []
        if named != "all" and (unknown := [name for name in named if name not in self.datasets]):
            raise ValueError(
                f"datasets_to_split names {', '.join(map(repr, unknown))}, but the datasets are "
                f"{', '.join(map(repr, self.datasets)) or 'none'}"
            )

    def _require_preprocessor(self) -> None:
        if self.preprocessor is None:
            return
        from trainlib._data.preprocessors import is_fitted, require_preprocessor

        require_preprocessor(self.preprocessor)
        if not self.datasets:
            raise ValueError("A preprocessor was given, but no datasets to apply it to. Pass datasets={...}.")
        if "train" not in self.datasets and not is_fitted(self.preprocessor):
            raise ValueError(
                "The preprocessor is not fitted, and there is no dataset 'train' to fit it on. Add 'train' to datasets, "
                "or call preprocessor.fit(dataset) first."
            )

    def _require_checkpoint(self) -> None:
        if self.resume_from_checkpoint is not None:
            self.resume_from_checkpoint.require()

    @property
    def gang(self) -> ScalingConfig:
        """The workers to start. What they need of both configs is in its ``runtime_env``; ScalingConfig's wins."""
        own, common = self.scaling_config.runtime_env, self.run_config.runtime_env
        if common is None:
            return self.scaling_config
        return self.scaling_config.model_copy(update={"runtime_env": own.over(common) if own else common})

    def bound_function(self) -> Callable[[], Any]:
        """The training function with its config bound, so that it is called without arguments."""
        function: Any = self.train_loop_per_worker
        bound = function
        if takes_config(function):
            config = dict(self.train_loop_config or {})
            bound = lambda: function(config)  # noqa: E731
        context = self.backend_config.train_func_context
        return bound if context is nullcontext else _Within(context, bound)  # type: ignore[no-any-return]

    def arguments(self, config_argument: str) -> dict[str, Any]:
        """The arguments that make a trainer with these settings; the framework's own go by ``config_argument``."""
        by_name = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.has_own_function:
            del by_name["train_loop_per_worker"], by_name["train_loop_config"]
            unset = dict.fromkeys(room_of(self.backend_config).own_arguments)
            by_name = {**unset, **(self.train_loop_config or {}), **by_name}
        return {config_argument if name == "backend_config" else name: value for name, value in by_name.items()}

    @property
    def has_own_function(self) -> bool:
        """Whether the trainer brings its training function, whose config then is the trainer's own arguments."""
        return room_of(self.backend_config).brings(self.train_loop_per_worker)

    @property
    def users_functions(self) -> list[Callable[..., Any]]:
        """The functions of the user's that workers will call: the training function, or those among the trainer's own arguments."""
        if not self.has_own_function:
            return [self.train_loop_per_worker] if self.train_loop_per_worker is not None else []
        given = (self.train_loop_config or {}).values()
        return [value for value in given if callable(value) and not isinstance(value, type)]

    def arguments_for_config(self, config: dict[str, Any] | None) -> dict[str, Any]:
        """The arguments of the trainer that say what its training function is called with."""
        return dict(config or {}) if self.has_own_function else {"train_loop_config": config}

    # -- in another process -----------------------------------------------------------------------------

    def dumps(self) -> bytes:
        """The settings for another process. Callbacks are left out, because they belong to this process, and secrets are.

        Raises:
            InvalidArgumentError: the training function or its config cannot be pickled.
        """
        import cloudpickle

        from trainlib._data.portable import packed

        without_callbacks = self.run_config.model_copy(update={"callbacks": None})
        portable = replace(
            self,
            datasets=packed(self.datasets),
            run_config=without_callbacks,
            train_loop_config=without_secrets(self.train_loop_config),
        )
        try:
            return cloudpickle.dumps(portable)  # type: ignore[no-any-return]
        except Exception as error:  # pickling runs the code of whatever is pickled
            raise InvalidArgumentError(
                f"{portable._unpicklable() or error}. Create it inside the training function, or pass what it is made of."
            ) from error

    def _unpicklable(self) -> str | None:
        """Which argument cannot be pickled, and what in it; None if none is found."""
        from trainlib._unpicklable import whats_unpicklable

        for field in fields(self):
            value = getattr(self, field.name)
            if (found := whats_unpicklable(value)) is not None:
                is_function = field.name == "train_loop_per_worker"
                name = f"the training function {getattr(value, '__name__', '')}".strip() if is_function else field.name
                return f"{name} cannot be sent to the workers: {found}"
        return None

    def unpacked(self, changes: Collection[str] = ()) -> TrainerSettings:
        """Settings that were unpickled, with datasets that can be read again. Those in ``changes`` are not needed.

        Raises:
            ValueError: a dataset was in the memory of a process that is gone, or a setting was a secret. Such have to be
                passed again.
        """
        from trainlib._data.portable import unpacked

        config = self.arguments_for_config(self.train_loop_config)
        lost = {name: list(hidden_in(config[name], name)) for name in config if name not in changes}
        for name, places in lost.items():
            if places:
                raise ValueError(
                    f"{', '.join(places)} {'were' if len(places) > 1 else 'was'} not saved, being secret. Pass the whole "
                    f"{name} again: restore(..., {name}={{...}})"
                )
        return self if "datasets" in changes else replace(self, datasets=unpacked(self.datasets))


@dataclass(frozen=True)
class _Within:
    """A function that is called inside of a context."""

    context: Callable[[], AbstractContextManager[Any]]
    function: Callable[[], Any]

    def __call__(self) -> Any:
        with self.context():
            return self.function()


def _require_no_cadence(config: CheckpointConfig) -> None:
    """A training function of the user's saves checkpoints itself, so nothing else can say when."""
    if wanted := [name for name in ("checkpoint_frequency", "checkpoint_at_end") if getattr(config, name, None)]:
        raise ValueError(
            f"CheckpointConfig sets {' and '.join(wanted)}, but the training function says when to save, with "
            "report(metrics, checkpoint=...). Leave it out"
        )


def _require_no_circle(value: Any, around: tuple[int, ...]) -> None:
    if not isinstance(value, (dict, list, tuple)):
        return
    if id(value) in around:
        raise ValueError("train_loop_config contains itself: pass a config without circles")
    for item in value.values() if isinstance(value, dict) else value:
        _require_no_circle(item, (*around, id(value)))


def takes_config(function: Any) -> bool:
    """Whether a training function takes the config. It has no parameter, or one, the config.

    Raises:
        InvalidArgumentError: it is not a function.
        ValueError: it has more required parameters.
    """
    if not callable(function):
        raise InvalidArgumentError(f"train_loop_per_worker is a {type(function).__name__}: pass a function")
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


def _as_config(model: Any, value: Any, name: str) -> Any:
    if value is None:
        return model()
    if (settings := settings_from_ray(value, model.__name__)) is not None:
        value = settings
    if isinstance(value, dict):
        value = model(**value)
    _require_type(value, model, name, f"a {model.__name__}")
    require_values(value, name)
    return value


def _require_type(value: Any, kind: type, name: str, what: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise InvalidArgumentError(f"{name} is {described(value)}: pass {what}")
