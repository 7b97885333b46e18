"""What can be tied to a training function before it is tuned: large arguments, and resources."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainlib._ray_objects import is_of_ray, settings_from_ray
from trainlib.config import ScalingConfig
from trainlib.errors import InvalidArgumentError
from trainlib.trainer import BaseTrainer
from trainlib.tune._trainable import FunctionWithResources

__all__ = ["with_parameters", "with_resources"]

_RESOURCES = {"cpu": "CPU", "gpu": "GPU"}


def with_parameters(trainable: Any, **parameters: Any) -> Any:
    """A training function with more arguments than its config, e.g. data that every trial uses.

    The arguments are kept with the sweep, so that a restored one has them too. Large tables are better passed as ``datasets``
    of a trainer, which its workers read.

    Example:
        >>> def train_func(config, data):
        ...     return {"total": config["factor"] * sum(data)}
        >>> with_parameters(train_func, data=[1, 2, 3])({"factor": 10})
        {'total': 60}

    Raises:
        InvalidArgumentError: it is not a function, or has no such argument.
    """
    if isinstance(trainable, FunctionWithResources):
        return replace(trainable, function=with_parameters(trainable.function, **parameters))
    _require_function(trainable, "with_parameters")
    try:
        inspect.signature(trainable).bind_partial(**parameters)
    except TypeError as error:
        name = getattr(trainable, "__name__", "the function")
        raise InvalidArgumentError(f"with_parameters: {name} {error}. Pass arguments that it has") from error
    bound = functools.partial(trainable, **parameters)
    functools.update_wrapper(bound, trainable)
    del bound.__dict__["__wrapped__"]  # its own signature: the arguments are no longer required
    return bound


def with_resources(trainable: Any, resources: Mapping[str, float] | ScalingConfig) -> FunctionWithResources:
    """A training function, and what each of its trials reserves. A trainer has its ``scaling_config`` for that.

    Example:
        >>> def train_func(config):
        ...     return {"output": config["input"]}
        >>> with_resources(train_func, {"cpu": 2}).scaling_config
        ScalingConfig(resources_per_worker={'CPU': 2.0})

    Raises:
        InvalidArgumentError: it is not a function, or these are not resources.
    """
    scaling = _scaling(resources)
    _require_function(trainable, "with_resources")
    return FunctionWithResources(trainable, scaling)


def _scaling(resources: Any) -> ScalingConfig:
    if isinstance(resources, ScalingConfig):
        return resources
    if (settings := settings_from_ray(resources, "ScalingConfig")) is not None:
        return ScalingConfig(**settings)
    if is_of_ray(resources, "PlacementGroupFactory"):
        return _scaling_of_bundles(resources.bundles, resources.strategy)
    if not isinstance(resources, Mapping):
        raise InvalidArgumentError(
            f"with_resources: resources is a {type(resources).__name__}. Pass a dict such as {{'cpu': 2, 'gpu': 1}}, or a "
            "ScalingConfig. To choose them by trial, put scaling_config into param_space of a trainer's Tuner"
        )
    amounts = {_RESOURCES.get(name, name): amount for name, amount in resources.items()}
    return ScalingConfig(resources_per_worker=amounts, use_gpu=bool(amounts.get("GPU")))


def _scaling_of_bundles(bundles: Sequence[dict[str, float]], strategy: str) -> ScalingConfig:
    """What Ray's PlacementGroupFactory asks for, as long as that is the function's own share."""
    if len(bundles) > 1:
        raise InvalidArgumentError(
            f"with_resources: this PlacementGroupFactory has {len(bundles)} bundles, for workers that the function starts by "
            "itself. Pass one bundle, or use a trainer, which starts them: DataParallelTrainer(train_func, "
            f"scaling_config=ScalingConfig(num_workers={len(bundles)}))"
        )
    return ScalingConfig(
        resources_per_worker=bundles[0], use_gpu=bool(bundles[0].get("GPU")), placement_strategy=strategy
    )


def _require_function(trainable: Any, name: str) -> None:
    if isinstance(trainable, BaseTrainer):
        raise InvalidArgumentError(
            f"{name} takes a training function, but got a {type(trainable).__name__}: a trainer has train_loop_config and "
            "scaling_config"
        )
    if not callable(trainable) or isinstance(trainable, type):
        raise InvalidArgumentError(f"{name} takes a training function, but got {trainable!r}")
