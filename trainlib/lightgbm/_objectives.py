"""What LightGBM's objectives need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib._boosting.labels import Needs
from trainlib.errors import DataError
from trainlib.lightgbm._params import canonical

if TYPE_CHECKING:
    import numpy as np

__all__ = ["classes_of", "need_of", "objective_of", "ranks", "require_possible", "require_share"]

_RANKING = ("lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart")
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


_SUMS_POSITIVE = ("poisson", "tweedie")
"""Those with which LightGBM ends if all labels of a worker are 0."""


def objective_of(params: dict[str, Any]) -> str:
    """The objective, whatever it is spelled as."""
    return str(canonical(params).get("objective") or "regression")


def classes_of(params: dict[str, Any]) -> Any:
    """The number of classes, whatever it is spelled as."""
    return canonical(params).get("num_class")


def ranks(params: dict[str, Any]) -> bool:
    """Whether the rows of a query are ranked."""
    return objective_of(params) in _RANKING


def need_of(params: dict[str, Any]) -> str | None:
    """What labels have to be, or None if any will do."""
    return _NEEDS.get(objective_of(params))


def require_share(params: dict[str, Any], labels: np.ndarray, where: str, *, workers: int) -> None:
    """Raise a DataError if an objective cannot begin with a worker's labels, although all of them are allowed.

    Args:
        params: LightGBM's parameters.
        labels: This worker's labels.
        where: Whose they are, in words.
        workers: How many workers there are.
    """
    objective = objective_of(params)
    if objective not in _SUMS_POSITIVE or labels.any():
        return
    if workers == 1:
        raise DataError(
            f"the objective {objective} needs labels above 0, but {where} are all 0. Choose another label_column or objective"
        )
    raise DataError(
        f"the objective {objective} needs labels above 0 on every worker, but {where} are all 0. Shuffle the rows, use fewer workers, or "
        "choose another objective"
    )


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
