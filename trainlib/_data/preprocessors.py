"""Ray Data's preprocessors: checked against the columns of the data, and fitted as copies."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib._serving.preprocessing import steps
from trainlib.errors import DataError, InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data
    from ray.data.preprocessor import Preprocessor

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_FOR_NUMBERS = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PowerTransformer", "Normalizer"}


def require_preprocessor(given: object) -> None:
    """Raise an InvalidArgumentError for anything that is not a preprocessor."""
    from ray.data.preprocessor import Preprocessor

    if not isinstance(given, Preprocessor):
        raise InvalidArgumentError(
            f"preprocessor is a {type(given).__name__}. Pass one of ray.data.preprocessors, e.g. StandardScaler(columns=[...])"
        )


def is_fitted(preprocessor: Preprocessor) -> bool:
    """Whether it can be applied without fitting."""
    return preprocessor.fit_status().value in ("FITTED", "NOT_FITTABLE")


def fitted(preprocessor: Preprocessor, train: ray.data.Dataset) -> Preprocessor:
    """A copy that is fitted on the training data."""
    return copy.deepcopy(preprocessor).fit(train)


def require_columns(preprocessor: Preprocessor, columns: Iterable[str], where: str) -> None:
    """Raise a DataError if the data lacks a column that the preprocessor needs.

    Example:
        >>> from ray.data.preprocessors import StandardScaler
        >>> require_columns(StandardScaler(columns=["age"]), ["age", "height"], "people.csv")
    """
    there = set(columns)
    for step in steps(preprocessor):
        for column in step.get_input_columns():
            if column not in there:
                raise DataError(
                    f"{type(step).__name__} needs the column {column!r}, but {where} has only: {', '.join(sorted(there))}"
                )
        made = step.get_output_columns()
        if not made:
            return  # its output columns are unknown, and a later step may need one of them
        there |= set(made)


def require_numbers(preprocessor: Preprocessor, schema: pa.Schema, where: str) -> None:
    """Raise a DataError if a column to be scaled is not numeric. Only the first step sees the original columns."""
    import pyarrow as pa

    first = steps(preprocessor)[0]
    if type(first).__name__ not in _FOR_NUMBERS:
        return
    for column in first.get_input_columns():
        kind = schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"{type(first).__name__} needs numbers, but column {column!r} of {where} is of type {kind}. Leave it out, or "
                "encode it first"
            )


def chained(first: Preprocessor | None, second: Preprocessor | None) -> Preprocessor | None:
    """One preprocessor that applies both, in this order."""
    from ray.data.preprocessors import Chain

    if first is None or second is None:
        return first or second
    return Chain(*steps(first), *steps(second))  # type: ignore[arg-type]


def fingerprint(preprocessor: Preprocessor) -> str:
    """A hash of its settings, and of its code if it is not one of Ray's. Equal in all processes.

    A pickle would not do: it differs for equal settings that were read from JSON, and has no code of importable modules.
    """
    parts = []
    for step in steps(preprocessor):
        kind = type(step)
        code = "" if kind.__module__.startswith("ray.") else _code_of(kind)
        state = {name: value for name, value in vars(step).items() if name != "_stat_computation_plan"}
        parts.append([f"{kind.__module__}.{kind.__qualname__}", code, state])
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=_canonical).encode()).hexdigest()


def _canonical(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    return _code_of(value) if callable(value) else _ADDRESS.sub("", repr(value))


def _code_of(code: Any) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):  # typed into a prompt, or written in C
        return hashlib.sha256(cloudpickle.dumps(code)).hexdigest()


def summarize(preprocessor: Preprocessor | None) -> str:
    """What is applied to which columns, in one line.

    Example:
        >>> from ray.data.preprocessors import StandardScaler
        >>> summarize(StandardScaler(columns=["a", "b", "c", "d"]))
        'StandardScaler(a, b, c and 1 more)'
    """
    if preprocessor is None:
        return "none"
    return ", ".join(f"{type(step).__name__}({_some(step.get_input_columns())})" for step in steps(preprocessor))


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
