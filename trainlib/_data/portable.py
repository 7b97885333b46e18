"""Saves datasets so that another process can continue the training."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import cloudpickle

from trainlib._data.manifest import PreprocessedDataset
from trainlib._secrets import HiddenSecret, without_secrets

__all__ = ["packed", "unpacked"]

# A table up to this size is saved with the training's settings. A larger one has to be passed again.
_SMALL = 64 * 1024**2


@dataclass(frozen=True)
class _Lineage:
    """A Ray Dataset, by the files and steps that it is made from."""

    data: bytes


@dataclass(frozen=True)
class _LeftOut:
    """A dataset that could not be saved, because it was in the memory of the process."""

    kind: str


def packed(datasets: dict[str, Any]) -> dict[str, Any]:
    """The datasets in a form that can be saved."""
    return {name: _pack(given) for name, given in datasets.items()}


def unpacked(datasets: dict[str, Any] | None) -> dict[str, Any]:
    """The datasets that :func:`packed` saved.

    Raises:
        ValueError: a dataset was in memory, and has to be passed again.
    """
    import ray.data

    result: dict[str, Any] = {}
    for name, kept in (datasets or {}).items():
        if isinstance(kept, HiddenSecret):
            raise ValueError(
                f"datasets[{name!r}] was a URI with a password, and was not saved. Pass it again: "
                f"restore(..., datasets={{{name!r}: ...}})"
            )
        if isinstance(kept, _LeftOut):
            raise ValueError(
                f"datasets[{name!r}] was a {kept.kind}, and was not saved. Pass it again: "
                f"restore(..., datasets={{{name!r}: ...}})"
            )
        result[name] = ray.data.Dataset.deserialize_lineage(kept.data) if isinstance(kept, _Lineage) else kept
    return result


def _pack(given: Any) -> Any:
    if isinstance(given, PreprocessedDataset):
        return given
    if isinstance(given, (str, os.PathLike)):
        return without_secrets(os.fspath(given))
    module = type(given).__module__.partition(".")[0]
    if module == "ray":
        return (
            _Lineage(given.serialize_lineage())
            if given.has_serializable_lineage()
            else _LeftOut("Ray Dataset in memory")
        )
    if module == "pandas":
        return given if given.memory_usage(deep=True).sum() <= _SMALL else _LeftOut("DataFrame in memory")
    if module == "datasets":
        return _LeftOut("Hugging Face dataset in memory")
    try:
        cloudpickle.dumps(given)
    except Exception:  # pickling runs user code
        return _LeftOut("function that cannot be sent to another process")
    return given
