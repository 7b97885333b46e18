"""Parameters that LightGBM does not know. It only warns of them, where nobody may see it."""

from __future__ import annotations

import ctypes
import difflib
import json
from typing import Any

from trainlib.errors import InvalidArgumentError

__all__ = ["require_known"]

_AT_FIRST = 1 << 16
"""Bytes for the list of all parameters. It had 9,000 in LightGBM 4.7."""


def require_known(params: dict[str, Any], library: ctypes.CDLL) -> None:
    """Raise an InvalidArgumentError if LightGBM has no parameter of a name, in any spelling.

    Args:
        params: The parameters.
        library: LightGBM's compiled part.
    """
    known = _known_to(library)
    if known and (unknown := [name for name in params if name not in known]):
        close = difflib.get_close_matches(unknown[0], known, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidArgumentError(
            f"LightGBM does not know the parameter{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))} in "
            f"params.{meant} Correct its name or leave it out"
        )


def _known_to(library: ctypes.CDLL) -> set[str]:
    """All names of parameters. None, if LightGBM does not say."""
    size, length = _AT_FIRST, ctypes.c_int64(0)
    while True:
        text = ctypes.create_string_buffer(size)
        if library.LGBM_DumpParamAliases(ctypes.c_int64(size), ctypes.byref(length), text) != 0:
            return set()
        if length.value <= size:
            aliases: dict[str, list[str]] = json.loads(text.value.decode())
            return {*aliases, *(name for names in aliases.values() for name in names)}
        size = length.value
