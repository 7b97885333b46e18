"""The rooms: one for each framework, declared by the framework's own folder.

To add a framework, add its folder, one line to :data:`ROOMS`, and its extra in pyproject.toml. Forms, RaySGD's
``backend="torch"``, error messages and the tests of all frameworks read what the room declares.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from trainlib._execution.backend import BackendConfig
from trainlib._ray_objects import described, is_of_ray, settings_from_ray
from trainlib.checkpoint import Checkpoint
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    from trainlib._settings import TrainerSettings
    from trainlib.config import ScalingConfig
    from trainlib.trainer import DataParallelTrainer

__all__ = [
    "FUNCTION",
    "ROOMS",
    "Room",
    "checkpoint_class",
    "choices",
    "folders",
    "for_functions",
    "load",
    "room_of",
    "taken_from_ray",
]

ROOMS: dict[str, str] = {
    "torch": "trainlib.torch._room",
    "tensorflow": "trainlib.tensorflow._room",
    "horovod": "trainlib.horovod._room",
    "xgboost": "trainlib.xgboost._room",
    "lightgbm": "trainlib.lightgbm._room",
    "sklearn": "trainlib.sklearn._room",
    "huggingface": "trainlib.huggingface._room",
    "accelerate": "trainlib.huggingface._accelerate_room",
    "rl": "trainlib.rl._room",
}
"""The module that declares each framework's room. Modules by name: ``import trainlib`` imports none of them."""


def folders() -> list[str]:
    """The rooms' folders in trainlib. Two rooms may share one.

    Example:
        >>> "huggingface" in folders(), "accelerate" in folders()
        (True, False)
    """
    return list(dict.fromkeys(module.split(".")[1] for module in ROOMS.values()))


@dataclass(frozen=True)
class Room:
    """What a framework's folder offers, and what it needs.

    Example:
        >>> room = load("torch")
        >>> room.name, room.config_arguments, room.extra
        ('torch', ('torch_config', 'torch_backend'), 'torch')
        >>> room.trainer_class().__name__
        'TorchTrainer'
    """

    config_class: type[BackendConfig]
    """The framework's settings. Its ``framework`` is the room's name."""
    config_arguments: tuple[str, ...]
    """The trainer's argument for these settings, in all spellings. The first is the usual one."""
    trainer: str
    """The trainer, as ``module:class``. By name, because the trainer's module imports its room."""
    packages: tuple[str, ...] = ()
    """What has to be importable, by import name. The first is the framework's own: without it, the framework is not installed."""
    version_package: str | None = None
    """The package whose version is the framework's. Default: the first."""
    extra: str | None = None
    """The extra that installs these packages: ``pip install 'trainlib[extra]'``."""
    check: Callable[[], None] | None = None
    """Raises an ImportError if something else is wrong with what is installed."""
    checkpoint: str | None = None
    """The checkpoint of the framework's models, as ``module:class``. Its ``kind`` is the room's name."""
    served: str | None = None
    """A standalone module that predicts with the framework's checkpoints, also where trainlib is not installed. None: nobody
    can without a function of their own.

    At its top it imports the standard library, ``trainlib._serving.arrays`` and ``trainlib._serving.preprocessing``, which are
    copied with it; inside its functions numpy, pandas and the framework: ``load(folder) -> Callable[[pandas.DataFrame], array | DataFrame | dict]`` loads the model from the folder of a
    checkpoint, and returns what predicts for rows that are already preprocessed. It may have ``why_not(folder) -> str | None``,
    which says, without loading anything, why a checkpoint cannot predict.
    """
    served_packages: tuple[str, ...] = ()
    """What ``served`` needs, by import name, with extras such as ``ray[rllib]``. Default: the packages."""
    form: str | None = None
    """What a form asks for, as ``module:class``. Default: a training function, its config and the framework's settings."""
    own_function: str | None = None
    """The training function of a trainer that is given none, as ``module:function``. Its config is the trainer's own arguments."""
    own_arguments: tuple[str, ...] = ()
    """The trainer's arguments that its own training function is called with, e.g. ``params``. They are kept as its
    ``train_loop_config``, so that runs, sweeps, forks and digests know them as they know the config of a user's function."""
    takes_function: bool = True
    """Whether the trainer runs a training function of the user's."""
    ends_by_itself: bool = True
    """Whether the room's own training function returns some time. Otherwise ``RunConfig.stop`` has to end a training."""
    rare_metrics: tuple[str, ...] = ()
    """How names of metrics begin that the room's own training function does not report each time, e.g. those of an evaluation."""
    validation: str | None = "validation"
    """What the trainer calls the dataset that a pipeline makes for validation. None: it takes none."""
    averages_gradients: bool = False
    """Whether the ranks of a training function hold the same model and average its gradients."""
    gang: str | None = None
    """What makes the gang of a training from its settings and its ScalingConfig, as ``module:function``, for a framework that
    starts actors of its own. Default: the workers that the ScalingConfig asks for."""

    @property
    def name(self) -> str:
        """The framework's name."""
        return self.config_class.framework

    @property
    def config_argument(self) -> str:
        """The usual spelling of the trainer's argument for the framework's settings."""
        return self.config_arguments[0]

    def training_function(self) -> Callable[[dict[str, Any]], Any]:
        """The training function of a trainer that is given none. Imports the framework's folder, but not the framework."""
        assert self.own_function is not None
        found: Callable[[dict[str, Any]], Any] = _import(self.own_function)
        return found

    def brings(self, function: Any) -> bool:
        """Whether a training function is the room's own, and its config the arguments of the room's trainer."""
        return self.own_function is not None and function is self.training_function()

    def reports_rarely(self, metric: str) -> bool:
        """Whether a metric may come later than with the first report.

        Example:
            >>> load("huggingface").reports_rarely("eval_loss"), load("huggingface").reports_rarely("loss")
            (True, False)
        """
        return metric.startswith(self.rare_metrics)

    def trainer_class(self) -> type[DataParallelTrainer]:
        """The trainer. Imports the framework's folder, but not the framework."""
        found: type[DataParallelTrainer] = _import(self.trainer)
        return found

    def gang_of(self, settings: TrainerSettings, scaling: ScalingConfig) -> ScalingConfig:
        """What has to be reserved for a training."""
        if self.gang is None:
            return scaling
        found: ScalingConfig = _import(self.gang)(settings, scaling)
        return found

    def require_installed(self) -> None:
        """Check that the framework can be imported, without importing it.

        Raises:
            ImportError: something is missing. The message says what to install.
        """
        if self.check is not None:
            self.check()
        if missing := [package for package in self.packages if find_spec(package) is None]:
            trainer = self.trainer.rpartition(":")[2]
            raise ImportError(f"{trainer} needs {' and '.join(missing)}: pip install 'trainlib[{self.extra}]'")

    def base_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the room's trainer as those of DataParallelTrainer; ``given`` may be its ``locals()``.

        Own arguments become the config of the room's own training function, unless the user gave a function.

        Raises:
            ImportError: the framework is not installed.
            ValueError: the framework's settings were passed in two spellings, or own arguments besides a training function.
            InvalidArgumentError: they are not this framework's settings.
        """
        self.require_installed()
        left_out = {"self", "__class__", *self.config_arguments, *self.own_arguments}
        common = {name: value for name, value in given.items() if name not in left_out}
        return {**common, **self._own_from(given), "backend_config": self._config_from(given)}

    def _own_from(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The training function and its config, if the room brings them."""
        own = {name: given[name] for name in self.own_arguments if given.get(name) is not None}
        if self.own_function is None:
            return {}
        trainer = self.trainer.rpartition(":")[2]
        if given.get("train_loop_per_worker") is not None:
            if own:
                raise ValueError(
                    f"{trainer} got a training function and {', '.join(own)}. The function itself says how to train: pass one or "
                    "the other"
                )
            return {}
        if given.get("train_loop_config") is not None:
            raise ValueError(
                f"{trainer} got a train_loop_config, but no training function that is called with it. Pass train_loop_per_worker, "
                f"or {', '.join(self.own_arguments)}"
            )
        return {"train_loop_per_worker": self.training_function(), "train_loop_config": own}

    def _config_from(self, given: Mapping[str, Any]) -> BackendConfig:
        spelled = {name: given[name] for name in self.config_arguments if given[name] is not None}
        if len(spelled) > 1:
            raise ValueError(f"{' and '.join(spelled)} are the same argument: pass one of them")
        for name, given_config in spelled.items():
            config = taken_from_ray(given_config)
            if not isinstance(config, self.config_class):
                wanted = self.config_class.__name__
                whose = f"trainlib.{self.name}.{wanted}" if is_of_ray(config, "BackendConfig") else wanted
                raise InvalidArgumentError(f"{name} is {described(config)}: pass a {whose}")
            return config
        return self.config_class()


FUNCTION = Room(
    config_class=BackendConfig,
    config_arguments=("backend_config",),
    trainer="trainlib.trainer:DataParallelTrainer",
)
"""No framework: the training function runs in processes that know their ranks, and nothing is set up around it."""


def for_functions() -> list[str]:
    """The names of the rooms whose trainers run a user's training function."""
    return [name for name in ROOMS if load(name).takes_function]


def load(name: str) -> Room:
    """The room of a framework, by its name. Imports the framework's folder, but not the framework."""
    if name == FUNCTION.name:
        return FUNCTION
    room: Room = importlib.import_module(ROOMS[name]).ROOM
    return room


def choices() -> list[str]:
    """All names that :func:`load` takes, for forms.

    Example:
        >>> choices()
        ['torch', 'tensorflow', 'horovod', 'xgboost', 'lightgbm', 'sklearn', 'huggingface', 'accelerate', 'rl', 'function']
    """
    return [*ROOMS, FUNCTION.name]


def checkpoint_class(kind: str) -> type[Checkpoint]:
    """The class of checkpoints with this ``kind``. Imports the framework's folder, but not the framework.

    Example:
        >>> checkpoint_class("torch").__name__, checkpoint_class("").__name__
        ('TorchCheckpoint', 'Checkpoint')
    """
    name = load(kind).checkpoint if kind in ROOMS else None
    found: type[Checkpoint] = _import(name) if name is not None else Checkpoint
    return found


def _import(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def taken_from_ray(config: Any) -> Any:
    """A framework's settings of Ray Train as those of its room. Anything else is given back as it is.

    A class that extends one of Ray's may set up workers in a way of its own, so it is not taken.
    """
    if is_of_ray(config, "BackendConfig") and type(config).__module__.split(".")[0] == "ray":
        for name in ROOMS:
            kind = load(name).config_class
            if type(config).__name__ == kind.__name__:
                return kind(**settings_from_ray(config, kind.__name__) or {})
    return config


def room_of(config: BackendConfig) -> Room:
    """The room that a framework's settings belong to. A user's own settings belong to none, which is ``FUNCTION``."""
    return load(config.framework) if config.framework in ROOMS else FUNCTION
