"""Exceptions on their way from a worker to its coordinator: what arrives is what was raised, if that can be."""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle

__all__ = ["portable", "revived"]


def portable(error: BaseException) -> bytes:
    """An exception, pickled without its traceback. Empty if it cannot be.

    Many classes of exceptions pickle, but do not unpickle: their ``__init__`` wants other arguments than those that they
    keep. Such a one is sent as its parts, so that it is still an exception of its own class where it arrives.
    """
    for pickled in (_whole, _in_parts):
        try:
            data = pickled(error)
            pickle.loads(data)
        except Exception:  # pickling runs the user's code
            continue
        return data
    return b""


def revived(data: bytes) -> BaseException | None:
    """The exception that :func:`portable` has packed; None if it could not be packed, or its class is not known here."""
    try:
        error = pickle.loads(data)
    except Exception:  # unpickling runs the user's code
        return None
    return error if isinstance(error, BaseException) else None


def _whole(error: BaseException) -> bytes:
    return cloudpickle.dumps(error)  # type: ignore[no-any-return]


def _in_parts(error: BaseException) -> bytes:
    state = {name: value for name, value in vars(error).items() if _pickles(value)}
    args = tuple(arg if _pickles(arg) else repr(arg) for arg in error.args)
    return cloudpickle.dumps(_Parts(type(error), args, state))  # type: ignore[no-any-return]


def _pickles(value: Any) -> bool:
    try:
        pickle.loads(cloudpickle.dumps(value))
    except Exception:  # pickling runs the user's code
        return False
    return True


class _Parts:
    """Unpickles as an exception that was put together again, without calling its ``__init__``."""

    def __init__(self, kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> None:
        self._parts = kind, args, state

    def __reduce__(self) -> tuple[Any, ...]:
        return _put_together, self._parts


def _put_together(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error
