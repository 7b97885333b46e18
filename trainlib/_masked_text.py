"""Passwords and keys in the text of a program or a settings file, such as a diff that is stored with a run."""

from __future__ import annotations

import re

from trainlib._secrets import MASK, is_secret, masked_uri

__all__ = ["masked_text"]

# Nothing here may be tried again and again on a long line: hence no match within a name, and possessive quantifiers.
_NAME = r"(?<![\w.\-])(?P<name>[\w.\-]++)"
_END_OF_NAME = r"[\"']?\]?"  # of {"name": ...} or environ["name"] = ...
_ANNOTATION = r"(?::\s*[\w.\[\], |]+?)?"
_QUOTED = r"[rbfuRBFU]{0,2}(?P<quote>\"\"\"|'''|\"|')(?P<text>(?:\\.|(?!(?P=quote))[^\\\n])*)"
_BARE = r"(?P<bare>[^\s\"'#,;(){}\[\]]++)(?![(\[\"'])"  # not the beginning of an expression such as environ["X"]

# name = "value", name: str = "value", "name": "value", environ["name"] = "value"
_ASSIGNED = re.compile(rf"{_NAME}{_END_OF_NAME}{_ANNOTATION}\s*(?:=>|=(?!=)|:)\s*(?:{_QUOTED}|{_BARE})")
# --name value
_OPTION = re.compile(rf"(?<![\w.\-])(?P<name>--[\w.\-]++)[ \t]++(?:{_QUOTED}|{_BARE})")
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# What stands after a name and a colon in a program, and is no value.
_TYPES = {"str", "bytes", "int", "float", "bool", "Any", "SecretStr", "SecretBytes", "Secret", "Path"}
_NO_TEXT = {"None": None, "null": None, "True": True, "true": True, "False": False, "false": False}


def masked_text(text: str) -> str:
    """A text in which the values of settings that are secret by their names, private keys, and passwords in URIs are masked.

    What is computed there, such as ``os.environ["DB_PASSWORD"]``, is left as it is.

    Example:
        >>> masked_text('connect(user="ada", password="x", max_tokens=5)')
        'connect(user="ada", password="********", max_tokens=5)'
        >>> masked_text("url: postgres://ada:x@host/db")
        'url: postgres://ada:********@host/db'
    """
    text = _PRIVATE_KEY.sub(rf"\1{MASK}\2", masked_uri(text))
    for pattern in (_ASSIGNED, _OPTION):
        text = pattern.sub(_without_value, text)
    return text


def _without_value(found: re.Match[str]) -> str:
    group = "text" if found["text"] is not None else "bare"
    value = found[group]
    if group == "bare" and value in _TYPES:
        return found[0]
    if not is_secret(found["name"], _literal(value) if group == "bare" else value):
        return found[0]
    start, end = (place - found.start() for place in found.span(group))
    return found[0][:start] + MASK + found[0][end:]


def _literal(bare: str) -> object:
    """What a word without quotes stands for, as far as it matters: a token is a text, a switch is none."""
    if bare in _NO_TEXT:
        return _NO_TEXT[bare]
    return int(bare) if bare.isdecimal() else bare
