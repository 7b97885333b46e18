"""Parameters that XGBoost does not know. It only warns of them, where nobody may see it."""

from __future__ import annotations

import re
from typing import Any

import xgboost
from xgboost.core import _LIB

from trainlib.errors import InvalidArgumentError
from trainlib.xgboost._messages import LISTENER, print_messages

__all__ = ["require_known"]

_SAID = re.compile(r"Parameters: \{ (?P<names>.*?) \} are not used", re.DOTALL)


def require_known(params: dict[str, Any], matrix: xgboost.DMatrix) -> None:
    """Raise an InvalidArgumentError if XGBoost says of a parameter that it does not use it.

    Args:
        params: The parameters. With ``validate_parameters=False`` they are not checked.
        matrix: The rows to train on: XGBoost looks at the parameters only when it has some.
    """
    if not params.get("validate_parameters", True):
        return
    said: list[str] = []
    listener = LISTENER(lambda message: said.append(message.decode(errors="replace")))
    _LIB.XGBRegisterLogCallback(listener)  # of this thread alone
    try:
        xgboost.Booster({**params, "validate_parameters": True, "verbosity": 1}, [matrix]).save_config()
    finally:
        print_messages()
    names = [name for message in said for found in _SAID.finditer(message) for name in _quoted(found["names"])]
    if names:
        raise InvalidArgumentError(
            f"XGBoost does not know the parameter{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))} in params, or does not "
            "use it with this booster and objective. Correct its name or leave it out; with 'validate_parameters': False it is "
            "ignored"
        )


def _quoted(text: str) -> list[str]:
    return re.findall(r'"([^"]+)"', text)
