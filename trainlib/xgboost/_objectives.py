"""What XGBoost's objectives need."""

from __future__ import annotations

from typing import Any

from trainlib._boosting.labels import Needs

__all__ = ["need_of", "require_possible"]

_NEEDS = {
    "binary:logistic": Needs.BETWEEN_0_AND_1,
    "binary:logitraw": Needs.BETWEEN_0_AND_1,
    "binary:hinge": Needs.ZERO_OR_ONE,
    "reg:logistic": Needs.BETWEEN_0_AND_1,
    "multi:softmax": Needs.CLASSES,
    "multi:softprob": Needs.CLASSES,
    "count:poisson": Needs.NOT_NEGATIVE,
    "reg:tweedie": Needs.NOT_NEGATIVE,
    "reg:gamma": Needs.POSITIVE,
}


def need_of(params: dict[str, Any]) -> str | None:
    """What labels have to be, or None if any will do."""
    return _NEEDS.get(str(params.get("objective")))


def require_possible(params: dict[str, Any]) -> None:
    """Raise a ValueError if the parameters cannot be right, whatever the data are.

    Example:
        >>> require_possible({"objective": "multi:softmax"})
        Traceback (most recent call last):
        ...
        ValueError: the objective multi:softmax needs num_class, the number of classes: add it to params
    """
    if need_of(params) == Needs.CLASSES:
        classes = params.get("num_class")
        if classes is None:
            raise ValueError(
                f"the objective {params['objective']} needs num_class, the number of classes: add it to params"
            )
        if isinstance(classes, bool) or not str(classes).isdigit() or int(classes) < 1:
            raise ValueError(f"num_class is {classes!r}: pass the number of classes")
