"""Configs and checkpoints of Ray Train itself, as trainlib's own: whoever ports a script may have left an import as it was.

Ray's classes are known by the names of their modules, so that nothing of Ray is imported for scripts that do not use them.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainlib.errors import InvalidArgumentError

__all__ = ["CheckpointOfRay", "checkpoint_from_ray", "described", "is_of_ray", "kind_of", "settings_from_ray"]

_SETTINGS = {
    "ScalingConfig": (
        "num_workers",
        "use_gpu",
        "resources_per_worker",
        "trainer_resources",
        "placement_strategy",
    ),
    "RunConfig": (
        "name",
        "storage_path",
        "failure_config",
        "checkpoint_config",
        "verbose",
        "stop",
        "callbacks",
    ),
    "CheckpointConfig": ("num_to_keep", "checkpoint_score_attribute", "checkpoint_score_order"),
    "FailureConfig": ("max_failures", "fail_fast"),
    "TuneConfig": (
        "mode",
        "metric",
        "search_alg",
        "scheduler",
        "num_samples",
        "max_concurrent_trials",
        "time_budget_s",
        "trial_name_creator",
    ),
    "TorchConfig": ("backend", "init_method", "timeout_s"),
    "TensorflowConfig": (),
    "HorovodConfig": ("nics", "verbose", "timeout_s", "placement_group_timeout_s"),
}
"""The settings of Ray's configs that trainlib's have too, by class."""
_RENAMED = {"worker_runtime_env": "runtime_env", "max_preemption_failures": "max_preemptions"}
_KINDS = {"TorchCheckpoint": "torch", "TensorflowCheckpoint": "tensorflow"}
_SCHEMES = {"s3": "s3", "gcs": "gs", "hdfs": "hdfs", "abfs": "abfs"}
"""The schemes of URIs, by the names of pyarrow's file systems."""


def settings_from_ray(value: Any, name: str) -> dict[str, Any] | None:
    """The settings of one of Ray's configs, for trainlib's class of the same name. None if it is none of Ray's.

    Args:
        value: What was given.
        name: The class that is needed, such as ``ScalingConfig``.
    """
    if not is_of_ray(value, name):
        return None
    if name == "DataConfig":
        return _data_settings(value)
    set_fields = dict(_fields_that_were_set(value))
    found = {field: set_fields.pop(field) for field in _SETTINGS[name] if field in set_fields}
    found |= {ours: set_fields.pop(rays) for rays, ours in _RENAMED.items() if rays in set_fields}
    if isinstance(found.get("fail_fast"), str):  # "raise", which is what trainlib does anyway
        found["fail_fast"] = True
    if "verbose" in found:
        found["verbose"] = int(found["verbose"])
    if found.get("max_concurrent_trials") == 0:  # no limit
        del found["max_concurrent_trials"]
    if (accelerator := set_fields.pop("accelerator_type", None)) is not None:
        found["resources_per_worker"] = _with_accelerator(found, accelerator)
    if set_fields:
        warnings.warn(
            f"{', '.join(sorted(set_fields))} of Ray's {name} {'have' if len(set_fields) > 1 else 'has'} no effect in trainlib",
            stacklevel=2,
        )
    return found


@dataclass(frozen=True)
class CheckpointOfRay:
    """Where a checkpoint of Ray's is."""

    location: str
    kind: str
    """The framework whose class it is of, such as ``torch``. Ray has the same files in it as trainlib."""


def checkpoint_from_ray(value: Any) -> CheckpointOfRay | None:
    """A checkpoint of Ray's. None if it is none of Ray's.

    Raises:
        InvalidArgumentError: it is in a store whose URI cannot be told.
    """
    if not is_of_ray(value, "Checkpoint"):
        return None
    kind = next((kind for name, kind in _KINDS.items() if is_of_ray(value, name)), "")
    return CheckpointOfRay(_location_of(value), kind)


def _location_of(checkpoint: Any) -> str:
    store, path = checkpoint.filesystem, str(checkpoint.path)
    if store.type_name == "local":
        return path
    if store.type_name in _SCHEMES:
        return f"{_SCHEMES[store.type_name]}://{path.lstrip('/')}"
    inner = getattr(getattr(store, "handler", None), "fs", None)
    if inner is not None and hasattr(inner, "unstrip_protocol"):  # of fsspec
        return str(inner.unstrip_protocol(path))
    raise InvalidArgumentError(
        f"this checkpoint of Ray's is in a store of the type {store.type_name!r}, whose URI is not known. Pass its URI: "
        "trainlib.Checkpoint.from_uri(...)"
    )


def is_of_ray(value: Any, name: str) -> bool:
    """Whether a value is of Ray's class with this name, or of one that extends it."""
    return any(kind.__name__ == name for kind in _rays_classes(value))


def kind_of(value: Any) -> str:
    """The name of a value's class with its article.

    Example:
        >>> kind_of(5), kind_of("text")
        ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def described(value: Any) -> str:
    """What a value is, for an error. Ray's classes are named with their module: trainlib's have the same names.

    Example:
        >>> described(5)
        'a int'
    """
    kind = type(value)
    rays = next(iter(_rays_classes(value)), None)
    if rays is None:
        return f"a {kind.__name__}"
    of_ray = f"{rays.__module__}.{rays.__name__}"
    return f"a {of_ray}" if rays is kind else f"a {kind.__name__}, which extends {of_ray}"


def _rays_classes(value: Any) -> list[type]:
    return [kind for kind in type(value).__mro__ if kind.__module__.split(".")[0] == "ray"]


def _fields_that_were_set(config: Any) -> list[tuple[str, Any]]:
    """What differs from a config of the same class that was given nothing: Ray fills in some defaults, such as its storage_path."""
    default = type(config)()
    names = [field.name for field in dataclasses.fields(config) if not field.name.startswith("_")]
    return [(name, getattr(config, name)) for name in names if getattr(config, name) != getattr(default, name)]


def _with_accelerator(found: Mapping[str, Any], accelerator: str) -> dict[str, float]:
    """Reserve a little of the resource that marks nodes with this accelerator, as Ray does."""
    return {**(found.get("resources_per_worker") or {}), f"accelerator_type:{accelerator}": 0.001}


def _data_settings(config: Any) -> dict[str, Any]:
    from ray.train import DataConfig

    if type(config).configure is not DataConfig.configure:
        raise InvalidArgumentError(
            f"{type(config).__name__} extends Ray's DataConfig with a configure() of its own. Extend trainlib.DataConfig instead"
        )
    return {
        "datasets_to_split": config._datasets_to_split,
        "execution_options": config._user_execution_options,
        "enable_shard_locality": config._enable_shard_locality,
    }
