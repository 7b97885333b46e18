"""Which labels an objective can learn. The libraries find some misfits only after a while, and others never."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib.errors import DataError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Needs", "require_fit"]


class Needs:
    """What an objective needs its labels to be."""

    BETWEEN_0_AND_1 = "between 0 and 1"
    ZERO_OR_ONE = "0 or 1"
    CLASSES = "classes, numbered from 0"
    NOT_NEGATIVE = "0 or more"
    POSITIVE = "more than 0"


_MORE = "Choose another objective, or another label_column"


def require_fit(labels: np.ndarray, need: str | None, objective: str, num_class: Any, where: str) -> None:
    """Raise a DataError if an objective cannot learn these labels.

    Args:
        labels: The labels, none of which is missing. They may be those of one worker alone, which may lack a class.
        need: What the objective needs, one of :class:`Needs`; None if that is not known.
        objective: Its name.
        num_class: How many classes there are, for objectives that tell classes apart.
        where: The column and the dataset, in words.

    Example:
        >>> import numpy as np
        >>> require_fit(np.array([0.0, 3.0]), Needs.ZERO_OR_ONE, "binary", None, "the label 'y'")
        Traceback (most recent call last):
        ...
        trainlib.errors.DataError: the objective binary needs labels that are 0 or 1, but the label 'y' has 3. Choose another objective, or another label_column
    """
    import numpy as np

    low, high = float(labels.min()), float(labels.max())
    wrong: float | None = None
    if need == Needs.BETWEEN_0_AND_1:
        wrong = low if low < 0 else high if high > 1 else None
    elif need == Needs.ZERO_OR_ONE:
        others = labels[(labels != 0) & (labels != 1)]
        wrong = float(others[0]) if others.size else None
    elif need == Needs.CLASSES:
        others = labels[(labels != np.floor(labels)) | (labels < 0) | (labels >= int(num_class))]
        wrong = float(others[0]) if others.size else None
        need = f"{need}, and below num_class, which is {num_class}"
    elif need == Needs.NOT_NEGATIVE:
        wrong = low if low < 0 else None
    elif need == Needs.POSITIVE:
        wrong = low if low <= 0 else None
    if wrong is not None:
        raise DataError(f"the objective {objective} needs labels that are {need}, but {where} has {wrong:g}. {_MORE}")
