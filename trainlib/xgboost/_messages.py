"""What XGBoost says while it works. Imports xgboost, so it is imported in workers only."""

from __future__ import annotations

import ctypes

from xgboost.core import _LIB

__all__ = ["print_messages"]


def _print(message: bytes) -> None:
    text = message.decode(errors="replace")
    if " got rank " not in text:  # every worker says that at every start
        print(text)


_PRINTING = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(_print)


def print_messages() -> None:
    """Print what XGBoost says in this thread: outside of Python's main thread, it writes past the log of the training."""
    _LIB.XGBRegisterLogCallback(_PRINTING)
