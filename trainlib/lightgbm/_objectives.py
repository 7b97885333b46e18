"""What LightGBM's objectives need."""

from __future__ import annotations

from typing import Any

from trainlib._boosting.labels import Needs

__all__ = ["need_of", "objective_of", "require_possible"]

_NAMES = ("objective", "objective_type", "app", "application", "loss")
_CLASSES = ("num_class", "num_classes")
_NEEDS = {
    "binary": Needs.ZERO_OR_ONE,
    "multiclass": Needs.CLASSES,
    "softmax": Needs.CLASSES,
    "multiclassova": Needs.CLASSES,
    "multiclass_ova": Needs.CLASSES,
    "ova": Needs.CLASSES,
    "ovr": Needs.CLASSES,
    "cross_entropy": Needs.BETWEEN_0_AND_1,
    "xentropy": Needs.BETWEEN_0_AND_1,
    "poisson": Needs.NOT_NEGATIVE,
    "tweedie": Needs.NOT_NEGATIVE,
    "gamma": Needs.POSITIVE,
}


def objective_of(params: dict[str, Any]) -> str:
    """The objective, whatever it is spelled as."""
    return str(_first(params, _NAMES) or "regression")


def classes_of(params: dict[str, Any]) -> Any:
    """The number of classes, whatever it is spelled as."""
    return _first(params, _CLASSES)


def need_of(params: dict[str, Any]) -> str | None:
    """What labels have to be, or None if any will do."""
    return _NEEDS.get(objective_of(params))


def require_possible(params: dict[str, Any]) -> None:
    """Raise a ValueError if the parameters cannot be right, whatever the data are.

    Example:
        >>> require_possible({"objective": "multiclass"})
        Traceback (most recent call last):
        ...
        ValueError: the objective multiclass needs num_class, the number of classes: add it to params
    """
    if need_of(params) != Needs.CLASSES:
        return
    classes = classes_of(params)
    if classes is None:
        raise ValueError(
            f"the objective {objective_of(params)} needs num_class, the number of classes: add it to params"
        )
    if isinstance(classes, bool) or not str(classes).isdigit() or int(classes) < 2:
        raise ValueError(f"num_class is {classes!r}: pass the number of classes")


def _first(params: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((params[name] for name in names if name in params), None)
