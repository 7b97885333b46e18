"""Errors about what somebody has typed into a form: they begin with the name of the field."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trainlib.errors import (
    CheckpointNotFoundError,
    DataError,
    DataNotFoundError,
    InvalidArgumentError,
    ModelNotFoundError,
    RunNotFoundError,
)

__all__ = ["about_field", "about_missing"]

_BAD_VALUES = (RunNotFoundError, CheckpointNotFoundError, ModelNotFoundError, DataError, InvalidArgumentError)


@contextmanager
def about_field(name: str) -> Iterator[None]:
    """Within the block, an error about a bad value says in which field it is.

    Example:
        >>> with about_field("run"):
        ...     raise RunNotFoundError("no training named 'digist'")
        Traceback (most recent call last):
        trainlib.errors.RunNotFoundError: run: no training named 'digist'
    """
    try:
        yield
    except _BAD_VALUES as error:
        raise type(error)(f"{name}: {error}") from error
    except (ValueError, ImportError) as error:
        raise InvalidArgumentError(f"{name}: {error}") from error


@contextmanager
def about_missing(name: str) -> Iterator[None]:
    """Within the block, data that are not there are those that a field names. Other errors may be about other fields."""
    try:
        yield
    except DataNotFoundError as error:
        raise DataNotFoundError(f"{name}: {error}") from error
