"""Passwords and keys: what counts as one, and how it is kept out of everything that is shown or stored.

A secret reaches the training function as it was passed. MLflow, Prefect, files and messages get :data:`MASK` instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "MASK",
    "HiddenSecret",
    "SecretText",
    "hidden_in",
    "is_secret",
    "masked",
    "masked_uri",
    "require_no_password",
    "without_login",
    "without_secrets",
]

MASK = "********"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET = re.compile(r"_(password|passphrase|secret|api_?key|access_key|private_key|credential)s?_")
_TOKEN = "_token_"
_IN_URI = re.compile(r"(?<=://)([^\s/?#@:]*):([^\s/?#@]+)(?=@)")
_LOGIN = re.compile(r"(?<=://)[^\s/?#@]*@")
_IN_QUERY = re.compile(r"(?<=[?&])([\w.\-]+)=([^&\s#]+)")


@dataclass(frozen=True)
class HiddenSecret:
    """Stands for a secret in settings that were saved without it."""


class SecretText(str):
    """A text that is a secret whatever its setting is called, such as the value of a Secret block that a form refers to.

    To the training function it is a ``str`` like any other.

    Example:
        >>> f"{SecretText('x')}", repr(SecretText("x"))
        ('x', "SecretText('********')")
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"SecretText({MASK!r})"


def masked(value: Any, name: str = "") -> Any:
    """A copy of a config that can be shown: each secret is :data:`MASK`, and passwords in URIs are left out.

    Args:
        value: The config, or a single setting.
        name: What a single setting is called.

    Example:
        >>> masked({"lr": 0.1, "db": {"user": "ada", "password": "x"}, "max_tokens": 5, "data": "ftp://ada:x@host/f.csv"})
        {'lr': 0.1, 'db': {'user': 'ada', 'password': '********'}, 'max_tokens': 5, 'data': 'ftp://ada:********@host/f.csv'}
    """
    return _replaced(value, name, MASK, masked_uri)


def without_secrets(value: Any) -> Any:
    """A copy of a config that can be saved: each secret is a :class:`HiddenSecret`."""
    return _replaced(value, "", HiddenSecret(), lambda uri: HiddenSecret())


def hidden_in(value: Any, path: str = "") -> Iterator[str]:
    """Where a config that was saved has lost its secrets, as it is written in Python.

    Example:
        >>> list(hidden_in(without_secrets({"lr": 0.1, "db": [{"password": "x"}]})))
        ["['db'][0]['password']"]
    """
    if isinstance(value, HiddenSecret):
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from hidden_in(item, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from hidden_in(item, f"{path}[{index}]")


def masked_uri(text: str) -> str:
    """A text without the passwords in its URIs.

    Example:
        >>> masked_uri("https://ada:pw@mlflow:5000/?api_key=1&page=2")
        'https://ada:********@mlflow:5000/?api_key=********&page=2'
    """
    text = _IN_URI.sub(rf"\1:{MASK}", text)
    return _IN_QUERY.sub(lambda found: f"{found[1]}={MASK}" if is_secret(found[1], found[2]) else found[0], text)


def require_no_password(uri: str) -> str:
    """Gives a URI back that is stored as it is, by MLflow or Prefect or in a file.

    Raises:
        ValueError: it has a password in it.
    """
    if masked_uri(uri) != uri:
        raise ValueError(
            f"{masked_uri(uri)} has a password in it, which would be stored. Give it to the store's library in the "
            "environment instead, e.g. as AWS_SECRET_ACCESS_KEY"
        )
    return uri


def without_login(uri: str) -> str:
    """A URI without the name and the password in it. Browsers and Python's own client take no others.

    Example:
        >>> without_login("https://ada:pw@mlflow:5000/")
        'https://mlflow:5000/'
    """
    return _LOGIN.sub("", uri)


def _replaced(value: Any, name: str, stands_for_secret: Any, without_password: Callable[[str], Any]) -> Any:
    if is_secret(name, value) or _hides_itself(value):
        return stands_for_secret
    if _is_uri(value) and masked_uri(value) != value:
        return without_password(value)
    if isinstance(value, dict):
        return {key: _replaced(item, str(key), stands_for_secret, without_password) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(item, "", stands_for_secret, without_password) for item in value)
    return value


def is_secret(name: str, value: Any) -> bool:
    """Whether a setting is a secret by its name. A switch is not, and neither is one that is not set.

    Example:
        >>> is_secret("db_password", "x"), is_secret("use_password", True), is_secret("hf_token", "x"), is_secret("token", 5)
        (True, False, True, False)
    """
    if value is None or isinstance(value, (bool, HiddenSecret)) or (isinstance(value, str) and not value):
        return False
    words = f"_{'_'.join(_WORDS.findall(name)).lower()}_"
    return _SECRET.search(words) is not None or (_TOKEN in words and isinstance(value, (str, bytes)))


def _hides_itself(value: Any) -> bool:
    """Whether it is an object that is made to keep a secret: pydantic's SecretStr and the like, a Secret block of Prefect."""
    if isinstance(value, SecretText):
        return True
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__}
    return not kinds.isdisjoint(
        {("pydantic", "SecretStr"), ("pydantic", "SecretBytes"), ("pydantic", "Secret"), ("prefect", "Secret")}
    )


def _is_uri(value: Any) -> bool:
    return isinstance(value, str) and "://" in value
