"""Ray Data's preprocessors: checked against the columns that there are, and fitted without changing the user's own."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib.errors import DataError, InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data
    from ray.data.preprocessor import Preprocessor

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_FOR_NUMBERS = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PowerTransformer", "Normalizer"}


def require_preprocessor(given: object) -> None:
    """Raise an InvalidArgumentError for what is no preprocessor."""
    from ray.data.preprocessor import Preprocessor

    if not isinstance(given, Preprocessor):
        raise InvalidArgumentError(
            f"preprocessor is a {type(given).__name__}: pass one of ray.data.preprocessors, e.g. StandardScaler(columns=[...])"
        )


def is_fitted(preprocessor: Preprocessor) -> bool:
    """Whether it can be applied as it is."""
    return preprocessor.fit_status().value in ("FITTED", "NOT_FITTABLE")


def fitted(preprocessor: Preprocessor, train: ray.data.Dataset) -> Preprocessor:
    """A copy, fitted on the training data."""
    return copy.deepcopy(preprocessor).fit(train)


def require_columns(preprocessor: Preprocessor, columns: Iterable[str], where: str) -> None:
    """Raise an error for a column that the preprocessor needs and the data lack.

    Example:
        >>> from ray.data.preprocessors import StandardScaler
        >>> require_columns(StandardScaler(columns=["age"]), ["age", "height"], "people.csv")
    """
    there = set(columns)
    for step in steps(preprocessor):
        for column in step.get_input_columns():
            if column not in there:
                raise DataError(
                    f"{type(step).__name__} needs the column {column!r}, which {where} does not have; it has: "
                    f"{', '.join(sorted(there))}"
                )
        made = step.get_output_columns()
        if not made:
            return  # it does not say what it makes, and a later step may need just that
        there |= set(made)


def require_numbers(preprocessor: Preprocessor, schema: pa.Schema, where: str) -> None:
    """Raise an error for a column that is to be scaled and is no number. Only the first step sees the columns as they are."""
    import pyarrow as pa

    first = steps(preprocessor)[0]
    if type(first).__name__ not in _FOR_NUMBERS:
        return
    for column in first.get_input_columns():
        kind = schema.field(column).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"{type(first).__name__} needs numbers, but column {column!r} of {where} is of type {kind}: leave it out of "
                "its columns, or encode it first"
            )


def one_after_the_other(first: Preprocessor | None, second: Preprocessor | None) -> Preprocessor | None:
    """Both, as one."""
    from ray.data.preprocessors import Chain

    if first is None or second is None:
        return first or second
    return Chain(*steps(first), *steps(second))  # type: ignore[arg-type]


def fingerprint(preprocessor: Preprocessor) -> str:
    """What changes when it would do something else, in any process: its settings, and its code if it is not Ray's.

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


def in_words(preprocessor: Preprocessor | None) -> str:
    """What is applied to which columns, short enough for a line.

    Example:
        >>> from ray.data.preprocessors import StandardScaler
        >>> in_words(StandardScaler(columns=["a", "b", "c", "d"]))
        'StandardScaler(a, b, c and 1 more)'
    """
    if preprocessor is None:
        return "none"
    return ", ".join(f"{type(step).__name__}({_some(step.get_input_columns())})" for step in steps(preprocessor))


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def steps(preprocessor: Preprocessor) -> list[Preprocessor]:
    """The preprocessors of a chain, or the one."""
    from ray.data.preprocessors import Chain

    if isinstance(preprocessor, Chain):
        return [step for each in preprocessor.preprocessors for step in steps(each)]
    return [preprocessor]
