"""Parameters that XGBoost does not know, or whose values it does not take. Of unknown ones it only warns, where nobody may see it."""

from __future__ import annotations

import ctypes
import re
import threading
from typing import Any

from trainlib.errors import InvalidArgumentError

__all__ = ["require_known"]

_LISTENER = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_UNUSED = re.compile(r"Parameters: \{ (?P<names>.*?) \} are not used", re.DOTALL)
_WRONG = re.compile(
    r"(Invalid Parameter format for|Invalid Input for|Invalid Input: '(?P<value>[^']*)'|Invalid argument for|value \S+ for Parameter \S+ "
    r"|Unknown (objective function|metric function|tree method|gbm type|tree updater|linear updater)|quantile alpha must|base_score must"
    r"|unable to parse the threshold)[^\n]*"
)
"""Errors that do not depend on the rows. Others may, and are left to the training."""
_ROWS = 4
_BY_COLUMN = ("monotone_constraints", "interaction_constraints", "feature_weights")
"""Parameters whose values depend on the columns."""


def require_known(params: dict[str, Any], library: ctypes.CDLL) -> None:
    """Raise an InvalidArgumentError if XGBoost says of a parameter that it does not use it, or that it cannot.

    Args:
        params: The parameters. With ``validate_parameters=False`` they are not checked.
        library: XGBoost's compiled part.
    """
    if not params.get("validate_parameters", True):
        return
    said: list[str] = []
    errors: list[str] = []
    # In a thread of its own: to whom XGBoost says something, how loudly, and with whom it is connected belongs to a thread.
    thread = threading.Thread(target=_configure, args=(library, params, said, errors), name="xgboost-parameters")
    thread.start()
    thread.join()
    names = [name for message in said for found in _UNUSED.finditer(message) for name in _quoted(found["names"])]
    if names:
        raise InvalidArgumentError(
            f"XGBoost does not know {', '.join(map(repr, names))} in params, or does not use it with this booster and objective. "
            "Correct the name or leave it out; with 'validate_parameters': False it is ignored"
        )
    for wrong in filter(None, map(_WRONG.search, errors)):
        # Of a value that is not in its list, XGBoost does not say whose it is.
        whose = [f"{name}={value!r} in " for name, value in params.items() if str(value) == wrong["value"]][:1]
        raise InvalidArgumentError(f"XGBoost does not accept {''.join(whose)}params: {wrong[0].strip()}")


def _configure(library: ctypes.CDLL, params: dict[str, Any], said: list[str], errors: list[str]) -> None:
    """Have XGBoost look at the parameters, which it does only when it has rows."""
    listener = _LISTENER(lambda message: said.append(message.decode(errors="replace")))
    matrix, booster, none = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float(float("nan"))
    values, rows = (ctypes.c_float * _ROWS)(*range(_ROWS)), ctypes.c_uint64(_ROWS)
    library.XGBRegisterLogCallback(listener)
    try:
        if library.XGDMatrixCreateFromMat(values, rows, ctypes.c_uint64(1), none, ctypes.byref(matrix)) != 0:
            return
        library.XGDMatrixSetFloatInfo(matrix, b"label", values, rows)
        if library.XGBoosterCreate(ctypes.byref(matrix), ctypes.c_uint64(1), ctypes.byref(booster)) != 0:
            return
        for name, value in {**params, "validate_parameters": True, "verbosity": 1, "nthread": 1}.items():
            for each in value if isinstance(value, (list, tuple)) and name == "eval_metric" else (value,):
                if name not in _BY_COLUMN:
                    plain = each.tolist() if hasattr(each, "tolist") else each
                    library.XGBoosterSetParam(booster, name.encode(), str(plain).encode())
        size, text = ctypes.c_uint64(), ctypes.c_char_p()
        if library.XGBoosterSaveJsonConfig(booster, ctypes.byref(size), ctypes.byref(text)) != 0:
            last = ctypes.CFUNCTYPE(ctypes.c_char_p)(("XGBGetLastError", library))
            errors.append((last() or b"").decode(errors="replace"))
    finally:
        library.XGBoosterFree(booster)
        library.XGDMatrixFree(matrix)


def _quoted(text: str) -> list[str]:
    return re.findall(r'"([^"]+)"', text)
