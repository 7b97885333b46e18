"""Saves a sweep's settings, with trainers and datasets, so that another process can continue it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle

from trainlib._data import portable
from trainlib._secrets import hidden_in, without_secrets
from trainlib.trainer import DataParallelTrainer
from trainlib.tune._domains import Categorical
from trainlib.tune._trainable import TunedByConfig

__all__ = ["packed", "unpacked"]

_DATASETS = "datasets"


@dataclass(frozen=True)
class _Trainer:
    """A trainer, as its class and its settings."""

    kind: type[DataParallelTrainer]
    settings: bytes


def packed(trainable: Any, param_space: dict[str, Any]) -> dict[str, Any]:
    """The trainable and the space in a form that can be saved.

    Raises:
        InvalidArgumentError: a training function or its config cannot be sent to another process.
    """
    space = {**param_space}
    if _DATASETS in space:
        space[_DATASETS] = _mapped(space[_DATASETS], lambda value: portable.packed({"": value})[""])
    return {"trainable": _mapped(trainable, _pack_trainer), "param_space": without_secrets(space)}


def unpacked(kept: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The settings that :func:`packed` saved, with those in ``changes`` in place of the saved ones.

    Raises:
        ValueError: a dataset was in memory, or a setting was a secret. Such have to be passed again.
    """
    settings = {**kept, **changes}
    if "trainable" not in changes:
        settings["trainable"] = _mapped(kept["trainable"], _unpack_trainer)
    if "param_space" not in changes and (lost := list(hidden_in(kept["param_space"], "param_space"))):
        raise ValueError(
            f"{', '.join(lost)} {'were' if len(lost) > 1 else 'was'} not saved, being secret. Pass the whole param_space "
            "again: Tuner.restore(name, param_space=...)"
        )
    if "param_space" not in changes and _DATASETS in kept["param_space"]:
        try:
            datasets = _mapped(kept["param_space"][_DATASETS], lambda value: portable.unpacked({"": value})[""])
        except ValueError:
            raise ValueError(
                "param_space has datasets that were in memory, and were not saved. Pass it again: "
                "Tuner.restore(name, param_space=...)"
            ) from None
        settings["param_space"] = {**kept["param_space"], _DATASETS: datasets}
    return settings


def _pack_trainer(value: Any) -> Any:
    if isinstance(value, TunedByConfig):
        return replace(value, trainer=_pack_trainer(value.trainer))
    return _Trainer(type(value), value.settings.dumps()) if isinstance(value, DataParallelTrainer) else value


def _unpack_trainer(value: Any) -> Any:
    if isinstance(value, TunedByConfig):
        return replace(value, trainer=_unpack_trainer(value.trainer))
    if not isinstance(value, _Trainer):
        return value
    return value.kind.from_settings(cloudpickle.loads(value.settings).unpacked())


def _mapped(node: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of a space with each value changed. The domains around them stay."""
    if isinstance(node, Categorical):
        return type(node)(tuple(_mapped(value, change) for value in node.values))
    if isinstance(node, dict):
        return {key: _mapped(value, change) for key, value in node.items()}
    if isinstance(node, list):
        return [_mapped(value, change) for value in node]
    return change(node)
