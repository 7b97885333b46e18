"""What a training function may report: any dict. Its numbers become metrics in MLflow, under flat names."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import cloudpickle

from trainlib._flat import SEPARATOR, flattened
from trainlib._json_text import text_of
from trainlib.errors import MetricError

__all__ = ["as_number", "is_number", "is_plain", "numbers_of", "snapshot"]

# Beyond that, an integer is no number for MLflow, which keeps floats.
_LARGEST = int(sys.float_info.max)
_MOST_LEVELS = 50
_AS_THEY_ARE = (str, bytes, float, int, bool, type(None))

# What a class of a framework is called, wherever in the framework it is defined.
_FRAMEWORKS = frozenset({"torch", "tensorflow", "keras", "tf_keras", "jax", "jaxlib"})
_TENSORS = frozenset({"Tensor", "Variable", "ResourceVariable", "Array", "ArrayImpl"})
_MODULES = frozenset({"Module", "Model", "Layer", "Optimizer"})


def is_plain(metrics: Mapping[Any, Any]) -> bool:
    """Whether these are numbers by name, as in most reports: then there is nothing to do about them.

    Example:
        >>> is_plain({"loss": 0.5, "epoch": 1}), is_plain({"loss": 0.5, "phase": "warm-up"})
        (True, False)
    """
    for name, value in metrics.items():
        kind = type(value)
        if type(name) is not str:
            return False
        if kind is float or kind is bool or (kind is int and -_LARGEST <= value <= _LARGEST):
            continue
        return False
    return True


def snapshot(metrics: dict[Any, Any]) -> dict[Any, Any]:
    """What was reported, as it is now and fit to travel: the training function may change its lists and arrays afterwards.

    Scalars of numpy, of a framework and of classes of one's own become Python's numbers. All else stays what it is.

    Example:
        >>> import numpy as np
        >>> snapshot({"loss": np.float64(0.5), "val": {"acc": 1}, "phase": "warm-up"})
        {'loss': 0.5, 'val': {'acc': 1}, 'phase': 'warm-up'}

    Raises:
        MetricError: it has a tensor or a model in it.
    """
    return metrics if is_plain(metrics) else _copied("", metrics, 0)


def numbers_of(metrics: Mapping[Any, Any]) -> Mapping[str, float]:
    """The numbers in what was reported, by flat names. If it is all numbers, it is given back itself.

    Example:
        >>> numbers_of({"loss": 0.5, "val": {"acc": 1, "phase": "warm-up"}})
        {'loss': 0.5, 'val/acc': 1}
    """
    if is_plain(metrics):
        return metrics
    found = ((name, as_number(value)) for name, value in flattened(metrics).items())
    return {name: number for name, number in found if number is not None}


def is_number(value: Any) -> bool:
    """Whether MLflow can keep a value as a metric.

    Example:
        >>> is_number(1), is_number("1"), is_number(10**400)
        (True, False, False)
    """
    return as_number(value) is not None


def as_number(value: Any) -> float | None:
    """A value as a number, or the one number in an array; None if it is anything else.

    Example:
        >>> import numpy as np
        >>> as_number(np.array([3])), as_number(np.array([3, 4])), as_number(None)
        (3, None, None)
    """
    if getattr(value, "size", None) == 1 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value
    return value if isinstance(value, int) and -_LARGEST <= value <= _LARGEST else None


def _copied(name: str, value: Any, level: int) -> Any:
    """A copy of a value that nobody else can change; ``name`` is what an error calls it."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if level > _MOST_LEVELS:
        raise MetricError(f"metric {name[:60]!r} is nested more than {_MOST_LEVELS} levels deep: report less of it")
    if isinstance(value, Mapping):
        inside = f"{name}{SEPARATOR}" if name else ""
        return {key: _copied(f"{inside}{key}", item, level + 1) for key, item in value.items()}
    if kind in (list, tuple):
        return kind(_copied(f"{name}[{index}]", item, level + 1) for index, item in enumerate(value))
    if (scalar := _scalar(name, value)) is not None:
        return scalar
    if isinstance(value, (int, float)):  # of a class of its own, such as an enum's
        return int(value) if isinstance(value, int) else float(value)
    if _is_array(value):
        return value.copy()
    return _carried(value)


def _scalar(name: str, value: Any) -> Any:
    """The Python number in a scalar of numpy or of a framework; None if it is no scalar.

    Raises:
        MetricError: it is a tensor of several numbers, or a model.
    """
    names = _framework_names(value)
    if names & _TENSORS:
        try:
            return value.item() if hasattr(value, "item") else value.numpy().item()
        except (ValueError, RuntimeError, TypeError, AttributeError):
            raise MetricError(
                f"metric {name!r} is a {type(value).__name__} of shape {tuple(value.shape)}. Put tensors in a checkpoint, "
                f"report(metrics, checkpoint=Checkpoint.from_dict({{...}})), or report a number, such as .mean().item()."
            ) from None
    if names & _MODULES:
        raise MetricError(
            f"metric {name!r} is a {type(value).__name__}, a part of a model. Put it in a checkpoint, "
            "report(metrics, checkpoint=Checkpoint.from_dict({...}))."
        )
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_scalar else None


def _framework_names(value: Any) -> set[str]:
    """What the classes of a value are called that a framework defines. No framework is imported for that."""
    return {kind.__name__ for kind in type(value).__mro__ if kind.__module__.partition(".")[0] in _FRAMEWORKS}


def _is_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and not value.dtype.hasobject


class _Carried:
    """An object of any class on its way to the process that coordinates the ranks, which may not know that class."""

    def __init__(self, pickled: bytes, text: str) -> None:
        self.pickled = pickled
        self.text = text

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.pickled, self.text)


def _carried(value: Any) -> Any:
    """An object as it is now; its text if it cannot be pickled."""
    text = text_of(value)
    try:
        return _Carried(cloudpickle.dumps(value), text)
    except Exception:  # whatever an object's own pickling may raise
        return text


def _arrived(pickled: bytes, text: str) -> Any:
    """The object; where its class is not known, its text."""
    try:
        return cloudpickle.loads(pickled)
    except Exception:  # unpickling runs the user's code
        return text
