"""Pickling without copies, and unpickling without code: numbers, texts, containers and NumPy arrays."""

from __future__ import annotations

import io
import pickle
from typing import IO, Any

__all__ = ["dump", "dumps", "plain_loads"]

_ALLOWED = {
    "builtins": {"bytearray", "complex", "frozenset", "range", "set", "slice"},
    "collections": {"OrderedDict", "deque"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
}
"""What may be called while unpickling, by module. None of it can call anything else."""


def dump(data: Any, file: IO[bytes]) -> None:
    """Pickle straight into ``file``, so that large tensors are not in memory a second time."""
    import cloudpickle

    cloudpickle.dump(data, file, protocol=pickle.HIGHEST_PROTOCOL)


def dumps(data: Any) -> bytes:
    """Pickle into bytes."""
    buffer = io.BytesIO()
    dump(data, buffer)
    return buffer.getvalue()


def plain_loads(data: bytes) -> Any:
    """What a pickle of plain values holds.

    Raises:
        pickle.UnpicklingError: there is something else in it, which may run code. It has not been run.

    Example:
        >>> plain_loads(pickle.dumps({"epoch": 3, "losses": [0.5, 0.25]}))
        {'epoch': 3, 'losses': [0.5, 0.25]}
    """
    return _PlainUnpickler(io.BytesIO(data)).load()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name not in _ALLOWED.get(module, ()):
            raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")
        return super().find_class(module, name)
