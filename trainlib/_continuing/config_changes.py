"""Changes to the config of a recorded training: some settings are different now, and secrets are put back."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from trainlib._secrets import HiddenSecret, hidden_in
from trainlib.errors import InvalidArgumentError

__all__ = ["LostSecrets", "UnknownSettingError", "hidden_keys", "lost_secrets", "place_of", "with_changes"]

_IN_A_LIST = re.compile(r"\[\d+\]")


class UnknownSettingError(InvalidArgumentError):
    """A config has no setting of that name, so that it cannot be changed."""


@dataclass(frozen=True)
class LostSecrets:
    """What a config lacks, because it was saved without its secrets."""

    keys: tuple[str, ...] = ()
    """Their keys, with dots where they are in dicts."""
    in_lists: tuple[str, ...] = ()
    """Where the others are, as it is written in Python. No key reaches them."""


def with_changes(config: Mapping[str, Any] | None, changes: Mapping[str, Any], *, add: bool = False) -> dict[str, Any]:
    """A copy of a config with some settings changed.

    Args:
        config: The config.
        changes: The new values by key. A key with dots reaches into dicts.
        add: Whether keys may be new.

    Raises:
        UnknownSettingError: there is no such key, and none may be added.

    Example:
        >>> with_changes({"lr": 0.1, "model": {"depth": 2}}, {"lr": 0.01, "model.depth": 4})
        {'lr': 0.01, 'model': {'depth': 4}}
    """
    result: dict[str, Any] = copy.deepcopy(dict(config or {}))
    for key, value in changes.items():
        holder, name = place_of(result, key, add=add)
        holder[name] = value
    return result


def place_of(config: dict[str, Any], key: str, *, add: bool) -> tuple[dict[str, Any], str]:
    """The dict that has a key with dots, and the name that it has there. A name with dots of its own is found too.

    Raises:
        UnknownSettingError: there is no such key, and none may be added.
    """
    holder, rest = config, key
    while rest not in holder:
        name, dot, after = rest.partition(".")
        if dot and isinstance(holder.get(name), dict):
            holder, rest = holder[name], after
        elif not add:
            known = ", ".join(_keys(config)) or "none"
            raise UnknownSettingError(f"the config has no key {key!r}. Its keys: {known}")
        elif dot and name in holder:
            raise UnknownSettingError(f"{key}: {name!r} is {holder[name]!r}, which has no keys")
        elif dot:
            holder[name] = {}
        else:
            break
    return holder, rest


def hidden_keys(config: Mapping[str, Any] | None, prefix: str = "") -> list[str]:
    """The keys of a config whose values were not saved, being secret.

    Example:
        >>> hidden_keys({"lr": 0.1, "db": {"password": HiddenSecret()}})
        ['db.password']
    """
    found: list[str] = []
    for key, value in (config or {}).items():
        if isinstance(value, HiddenSecret):
            found.append(f"{prefix}{key}")
        elif isinstance(value, dict):
            found += hidden_keys(value, f"{prefix}{key}.")
    return found


def lost_secrets(config: Mapping[str, Any] | None, given: Collection[str] = ()) -> LostSecrets:
    """The secrets that a config lacks, and that ``given`` does not name either.

    Example:
        >>> lost_secrets({"api_key": HiddenSecret(), "dbs": [HiddenSecret()]})
        LostSecrets(keys=('api_key',), in_lists=("['dbs'][0]",))
    """
    return LostSecrets(
        keys=tuple(key for key in hidden_keys(config) if key not in given),
        in_lists=tuple(place for place in hidden_in(config) if _IN_A_LIST.search(place)),
    )


def _keys(config: Mapping[str, Any], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in config.items():
        found += _keys(value, f"{prefix}{key}.") if isinstance(value, dict) and value else [f"{prefix}{key}"]
    return found
