"""What people pass where a checkpoint is needed: a checkpoint, where it is, or how the registry knows it."""

from __future__ import annotations

import os
import re
from typing import Any

from trainlib._ray_objects import checkpoint_from_ray
from trainlib._rooms import checkpoint_class
from trainlib.checkpoint import Checkpoint
from trainlib.errors import InvalidArgumentError

__all__ = ["checkpoint_to_report", "checkpoint_to_resume"]

_IN_REGISTRY = re.compile(r"models:/.+|m-[0-9a-f]{32}")


def checkpoint_to_report(given: Any) -> Checkpoint | None:
    """The checkpoint that was passed to ``report()``. One of Ray's own is taken, too.

    Raises:
        InvalidArgumentError: it is something else.
    """
    if given is None or isinstance(given, Checkpoint):
        return given
    if (found := checkpoint_from_ray(given)) is not None:
        return checkpoint_class(found.kind)(found.location)
    raise InvalidArgumentError(
        f"checkpoint is a {type(given).__name__}: pass a trainlib.Checkpoint, e.g. Checkpoint.from_dict({{...}}) or "
        "Checkpoint.from_directory(path)"
    )


def checkpoint_to_resume(given: Any, argument: str) -> Checkpoint | None:
    """The checkpoint to start from.

    Only what the registry has is trusted by itself: a path or a URI goes by the rules of :class:`Checkpoint`.

    Args:
        given: A checkpoint, trainlib's or Ray's; a path or a URI; the id of a checkpoint; or a model of the registry.
        argument: What it was passed as, for errors.

    Raises:
        InvalidArgumentError: it is something else.
        CheckpointNotFoundError: there is no checkpoint with that id.
        ModelNotFoundError: there is no such model, version or alias.
    """
    if given is None or isinstance(given, Checkpoint):
        return given
    if (found := checkpoint_from_ray(given)) is not None:
        return checkpoint_class(found.kind)(found.location)
    if isinstance(given, str) and _IN_REGISTRY.fullmatch(given):
        return _in_registry(given)
    if isinstance(given, (str, os.PathLike)) and os.fspath(given):
        return Checkpoint(os.fspath(given))
    what = repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
    raise InvalidArgumentError(
        f"{argument} is {what}: pass a trainlib.Checkpoint, e.g. result.checkpoint, a path or URI of a saved one, the id of a "
        "checkpoint (`trainlib checkpoints` lists them), or a model, models:/NAME@ALIAS"
    )


def _in_registry(name: str) -> Checkpoint:
    """The checkpoint with an id, or that of a registered model. A model that MLflow has logged itself is not trusted."""
    from trainlib._prediction.model_names import find_model

    model = find_model(name)
    return checkpoint_class(model.kind)(model.location, trust=model.is_checkpoint)
