"""What a sweep tunes: a trainer, a function, or a choice of trainers; and how a trial's config is applied to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from trainlib._training.naming import subject_name
from trainlib.config import RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError
from trainlib.session import report
from trainlib.trainer import BaseTrainer, DataParallelTrainer
from trainlib.tune._domains import Categorical
from trainlib.tune._sample import as_domain
from trainlib.tune._space import Space, leaves, require_picklable

__all__ = ["FunctionWithResources", "Trainable", "TunedByConfig"]

_TRAINER = "trainer"
_CONFIG = "train_loop_config"


@dataclass(frozen=True)
class TunedByConfig:
    """A trainer that is tuned like a function: the search space is its config, without ``train_loop_config`` around it."""

    trainer: Any


@dataclass(frozen=True)
class FunctionWithResources:
    """A training function, and what each of its trials reserves: ``tune.with_resources``."""

    function: Callable[..., Any]
    scaling_config: ScalingConfig


class Trainable:
    """A trainer, a function, or ``tune.choice`` or ``tune.grid_search`` over trainers.

    A trial's trainer is a copy with the trial's settings. The original is not changed.
    """

    def __init__(self, given: Any) -> None:
        domain = as_domain(given)
        if domain is not None and not isinstance(domain, Categorical):
            raise InvalidArgumentError(
                "to choose between trainers, a Tuner takes tune.choice([...]) or tune.grid_search([...])"
            )
        values = domain.values if isinstance(domain, Categorical) else (given,)
        self.trainers = [_as_trainer(value) for value in values]
        self.is_function = not any(isinstance(value, BaseTrainer) for value in values)
        """Whether the search space is just the config."""
        named = tuple(Candidate(*both) for both in zip(_names(self.trainers), self.trainers, strict=True))
        self._domain = type(domain)(named) if isinstance(domain, Categorical) else None

    @property
    def name(self) -> str:
        """The name of what is tuned, for display."""
        if self._domain is not None:
            return " or ".join(dict.fromkeys(type(trainer).__name__ for trainer in self.trainers))
        trainer = self.trainers[0]
        function = trainer.train_loop_per_worker
        return getattr(function, "__name__", "function") if self.is_function else type(trainer).__name__

    @property
    def trained(self) -> str:
        """What is trained, by name; the trainers, if the sweep chooses between several."""
        subject = subject_name(self.trainers[0].subject) if self._domain is None else None
        return subject or self.name

    @property
    def run_config(self) -> RunConfig:
        """The trainer's own RunConfig, for what the sweep does not set."""
        return self.trainers[0].run_config

    def space(self, param_space: Mapping[str, Any]) -> Space:
        """The search space over the settings of a trainer.

        Raises:
            ValueError: the trainer has no such setting, or a value cannot be sent to workers.
        """
        tree = dict(param_space)
        if self.is_function:
            tree = {_CONFIG: tree}
        known = {name for trainer in self.trainers for name in trainer.arguments()}
        if unknown := sorted(map(str, tree.keys() - known)):
            where = "Put what the training function gets into 'train_loop_config'. " if _CONFIG in known else ""
            raise ValueError(
                f"param_space has {', '.join(map(repr, unknown))}, but {self.name} has no such setting. {where}The settings are "
                f"{', '.join(sorted(known))}"
            )
        # Datasets are not sent to workers, which read their shards.
        require_picklable({key: value for key, value in tree.items() if key != "datasets"})
        if self._domain is not None:
            tree = {_TRAINER: self._domain, **tree}
        return Space(tree, root=(_CONFIG,) if self.is_function else ())

    def with_each_dataset(self, space: Space) -> Iterator[DataParallelTrainer]:
        """The trainers, and copies of the first one with each dataset that the sweep may choose."""
        yield from self.trainers
        for path, domain in leaves(space.tree.get("datasets", {})):
            for value in domain.values if isinstance(domain, Categorical) and len(path) < 2 else ():
                yield self.trainer({"datasets": {path[0]: value} if path else value}, {})

    def config(self, tree: dict[str, Any]) -> dict[str, Any]:
        """A trial's config in the form of the user's ``param_space``."""
        shown: dict[str, Any] = {key: value.__name__ if key == _TRAINER else value for key, value in tree.items()}
        return dict(shown[_CONFIG]) if self.is_function and self._domain is None else shown

    def chosen(self, config: dict[str, Any]) -> DataParallelTrainer:
        """The trainer with the config of a trial, as :meth:`config` gives it."""
        tree = {_CONFIG: config} if self.is_function and self._domain is None else dict(config)
        if self._domain is not None:
            tree[_TRAINER] = next(each for each in self._domain.values if each.__name__ == config[_TRAINER])
        return self.trainer(tree, {})

    def trainer(self, tree: dict[str, Any], run_fields: Mapping[str, Any]) -> DataParallelTrainer:
        """The trainer of a trial. The sweep's run settings override the trainer's, and the trial's override both."""
        base = tree[_TRAINER].trainer if _TRAINER in tree else self.trainers[0]
        arguments = {**base.arguments(), "run_config": merged(base.run_config, run_fields)}
        for key, value in tree.items():
            if key != _TRAINER and key in arguments:
                arguments[key] = merged(arguments[key], value)
        return base.copy_with(**arguments)


class Candidate:
    """A trainer that a sweep may choose, with a unique name."""

    def __init__(self, name: str, trainer: DataParallelTrainer) -> None:
        self.__name__ = name
        self.trainer = trainer


def _names(trainers: Sequence[DataParallelTrainer]) -> list[str]:
    """Names for the trainers: their types if these differ, else what they train: training functions, estimators, objectives."""
    types = [type(trainer).__name__ for trainer in trainers]
    subjects = [subject_name(trainer.subject) or "function" for trainer in trainers]
    if len(set(types)) == len(types):
        return types
    if len(set(subjects)) == len(subjects):
        return subjects
    return [f"{index}: {name}" for index, name in enumerate(subjects)]


class ReportingFunction:
    """A training function whose return value, a dict or a number, is its last report, as in Ray Tune."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function  # so that inspect sees its signature
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)

    def __call__(self, *config: Any) -> Any:
        value = self.__wrapped__(*config)
        for metrics in _reports(value):
            report(metrics)
        return None if inspect.isgenerator(value) else value


def _reports(value: Any) -> Iterator[dict[str, Any]]:
    if inspect.isgenerator(value):
        for item in value:
            yield from _reports(item)
    elif isinstance(value, dict) and value:
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield {"_metric": value}


def _as_trainer(value: Any) -> DataParallelTrainer:
    if isinstance(value, TunedByConfig):
        value = value.trainer
    if isinstance(value, DataParallelTrainer):
        for name, setting in value.arguments().items():
            if isinstance(setting, dict) and next(leaves(Space(setting).tree), None) is not None:
                raise ValueError(f"the trainer's {name} has a search space in it. Move it to the Tuner's param_space")
        return value
    if isinstance(value, BaseTrainer):
        raise InvalidArgumentError(
            f"{type(value).__name__} cannot be tuned: pass a trainer that has a training function"
        )
    if isinstance(value, FunctionWithResources):
        return DataParallelTrainer(ReportingFunction(value.function), scaling_config=value.scaling_config)
    if callable(value) and not isinstance(value, type):
        return DataParallelTrainer(ReportingFunction(value))
    raise InvalidArgumentError(f"a Tuner got {value!r}: pass a trainer, or a training function")


def merged(old: Any, new: Any) -> Any:
    """``old`` with ``new`` on top. Dicts and configs are merged by key; anything else is replaced.

    Example:
        >>> merged({"lr": 0.1, "model": {"width": 8, "depth": 2}}, {"model": {"width": 16}})
        {'lr': 0.1, 'model': {'width': 16, 'depth': 2}}
    """
    if isinstance(old, BaseModel) and isinstance(new, Mapping):
        fields = {name: getattr(old, name) for name in old.model_fields_set}
        return type(old)(**merged(fields, new))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return {**old, **{key: merged(old[key], value) if key in old else value for key, value in new.items()}}
    return new
