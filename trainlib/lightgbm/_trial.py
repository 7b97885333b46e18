"""Has LightGBM itself look at parameters, on a handful of rows. That takes a millisecond, and does not import the package."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Trial", "as_text", "try_out"]

_ROWS = 8
_FLOAT64, _FLOAT32, _INT32 = 1, 0, 2
"""What LightGBM calls these types."""
_OURS = {"verbosity": -1, "num_threads": 1}


@dataclass(frozen=True)
class Trial:
    """What LightGBM makes of parameters."""

    error: str | None
    """Why it does not take them."""
    metrics: int = 0
    """How many numbers it would measure on a dataset."""


def try_out(params: Mapping[str, str], library: ctypes.CDLL) -> Trial:
    """Begin a training without rounds. To be called in a thread of its own: how much LightGBM says belongs to a thread.

    Args:
        params: The parameters, as :func:`as_text` has them.
        library: LightGBM's compiled part.
    """
    text = " ".join(f"{name}={value}" for name, value in {**params, **_OURS}.items()).encode()
    rows, ones = (ctypes.c_double * _ROWS)(*range(_ROWS)), (ctypes.c_float * _ROWS)(*[1.0] * _ROWS)
    queries = (ctypes.c_int32 * 2)(_ROWS // 2, _ROWS // 2)
    dataset, booster, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    shape = (ctypes.c_int32(_ROWS), ctypes.c_int32(1), ctypes.c_int(1))  # row by row
    try:
        made = library.LGBM_DatasetCreateFromMat(
            rows, ctypes.c_int(_FLOAT64), *shape, text, None, ctypes.byref(dataset)
        )
        if made != 0:
            return Trial(_last_error(library))
        # All objectives can learn a label of 1, and those that rank need queries.
        library.LGBM_DatasetSetField(dataset, b"label", ones, ctypes.c_int(_ROWS), ctypes.c_int(_FLOAT32))
        library.LGBM_DatasetSetField(dataset, b"group", queries, ctypes.c_int(2), ctypes.c_int(_INT32))
        if library.LGBM_BoosterCreate(dataset, text, ctypes.byref(booster)) != 0:
            return Trial(_last_error(library))
        library.LGBM_BoosterGetEvalCounts(booster, ctypes.byref(count))
        return Trial(None, count.value)
    finally:
        if booster:
            library.LGBM_BoosterFree(booster)
        if dataset:
            library.LGBM_DatasetFree(dataset)


def as_text(value: Any) -> str | None:
    """A value as LightGBM's own package passes it on. None if it does not take it.

    Example:
        >>> as_text(["auc", "l2"]), as_text(0.1), as_text({})
        ('auc,l2', '0.1', None)
    """
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(plain, (list, tuple, set)):
        return ",".join(map(str, plain))
    return None if isinstance(plain, Mapping) else str(plain)


def _last_error(library: ctypes.CDLL) -> str:
    last = ctypes.CFUNCTYPE(ctypes.c_char_p)(("LGBM_GetLastError", library))
    return (last() or b"").decode(errors="replace").strip()
