"""Settings that are changed on the command line: ``--set lr=0.01``, ``--set model.depth=4``, ``--secret db.password=DB_PASSWORD``."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import typer

from trainlib._continuing.config_changes import UnknownSettingError, hidden_keys, place_of, with_changes
from trainlib._secrets import HiddenSecret

__all__ = ["changed", "with_secrets"]


def changed(config: Mapping[str, Any] | None, changes: Iterable[str], *, add: bool = False) -> dict[str, Any]:
    """A copy of a config with some settings changed.

    Args:
        config: The config.
        changes: Each as ``key=value``. A key with dots reaches into dicts; a value is JSON, or a text in place of a text.
        add: Whether keys may be new.

    Raises:
        BadParameter: a change cannot be read, or its key is unknown.

    Example:
        >>> changed({"lr": 0.1, "model": {"depth": 2, "kind": "mlp"}}, ["lr=0.01", "model.depth=4", "model.kind=cnn"])
        {'lr': 0.01, 'model': {'depth': 4, 'kind': 'cnn'}}
    """
    result: dict[str, Any] = copy.deepcopy(dict(config or {}))
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key.strip():
            raise _bad("--set", f"{change!r} is not a change: write it like --set lr=0.01")
        try:
            holder, name = place_of(result, key.strip(), add=add)
        except UnknownSettingError as error:
            raise _bad("--set", str(error) if add else f"{error}. To add one, pass --add") from None
        holder[name] = _value(key.strip(), text, holder.get(name))
    return result


def with_secrets(config: Mapping[str, Any] | None, secrets: Iterable[str]) -> dict[str, Any]:
    """A copy of a config with secrets put back that were not saved. Each is ``key=VARIABLE``.

    Raises:
        BadParameter: one cannot be read, or its key is no secret, or the variable is not set.
    """
    hidden = hidden_keys(config)
    values: dict[str, str] = {}
    for secret in secrets:
        key, _, variable = secret.partition("=")
        if not key or not variable:
            raise _bad("--secret", f"{key!r} is incomplete: write it like --secret db.password=DB_PASSWORD")
        if key not in hidden:
            known = ", ".join(hidden) or "none"
            raise _bad("--secret", f"no secret has the key {key!r}. What was not saved: {known}")
        if variable not in os.environ:
            raise _bad("--secret", f"{key}: the environment variable {variable!r} is not set")
        values[key] = os.environ[variable]
    return with_changes(config, values)


def _value(key: str, text: str, present: Any) -> Any:
    if isinstance(present, HiddenSecret):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if present is None or isinstance(present, str):
            return text
        why = f"{key}: {text!r} is not JSON, and would take the place of {present!r}. To set a text, write it in quotes twice"
        raise _bad("--set", f"{why}: --set '{key}=\"...\"'") from None


def _bad(option: str, what: str) -> typer.BadParameter:
    return typer.BadParameter(what, param_hint=f"'{option}'")
