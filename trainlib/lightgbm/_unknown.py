"""Parameters that LightGBM does not know. It only warns of them, where nobody may see it."""

from __future__ import annotations

import difflib
from typing import Any

from trainlib.errors import InvalidArgumentError

__all__ = ["require_known"]


def require_known(params: dict[str, Any]) -> None:
    """Raise an InvalidArgumentError if LightGBM has no parameter of a name, in any spelling."""
    from lightgbm.basic import _ConfigAliases

    aliases = _ConfigAliases._get_all_param_aliases()
    known = {*aliases, *(name for names in aliases.values() for name in names)}
    if unknown := [name for name in params if name not in known]:
        close = difflib.get_close_matches(unknown[0], known, n=1)
        meant = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidArgumentError(
            f"LightGBM does not know the parameter{'s' if len(unknown) > 1 else ''} {', '.join(map(repr, unknown))} in "
            f"params.{meant} Correct its name or leave it out"
        )
