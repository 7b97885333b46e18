"""How many bins values are cut into. XGBoost trains only if the model and the matrices of all datasets have the same number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlib.errors import InvalidArgumentError

__all__ = ["max_bin_of"]


def max_bin_of(params: Mapping[str, Any], given: Mapping[str, Mapping[str, Any]]) -> int | None:
    """The number of bins, wherever it is said. None if nobody says it.

    Args:
        params: XGBoost's parameters.
        given: The arguments of the datasets' matrices, by dataset.

    Raises:
        InvalidArgumentError: there are several, or it is no number.

    Example:
        >>> max_bin_of({}, {"train": {"max_bin": 16}})
        16
        >>> max_bin_of({"max_bin": 64}, {"train": {"max_bin": 16}})
        Traceback (most recent call last):
        ...
        trainlib.errors.InvalidArgumentError: max_bin is 64 in params, but 16 in dmatrix_params['train']. XGBoost takes one number for the model and all datasets. Leave one of them out
    """
    places = {"params": params, **{f"dmatrix_params[{name!r}]": arguments for name, arguments in given.items()}}
    found = {where: _number(named["max_bin"], where) for where, named in places.items() if "max_bin" in named}
    if not found:
        return None
    (first, bins), *others = found.items()
    for where, other in others:
        if other != bins:
            raise InvalidArgumentError(
                f"max_bin is {bins} in {first}, but {other} in {where}. XGBoost takes one number for the model and all datasets. "
                "Leave one of them out"
            )
    return bins


def _number(value: Any, where: str) -> int:
    if isinstance(value, bool) or not str(value).isdigit() or int(value) < 2:
        raise InvalidArgumentError(f"max_bin is {value!r} in {where}: pass a whole number that is 2 or more")
    return int(value)
