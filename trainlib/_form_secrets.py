"""Secrets that somebody types into a form: Prefect would store them as they are, so a form takes only references to Secret blocks.

Two places refuse them, both by the name of the field. Prefect's server does so before it stores anything, by the JSON schema of the
form. Where no server looks at the schema, the flow does, before it starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from trainlib._secrets import MASK, SecretText, is_secret, masked_uri

__all__ = [
    "ADVICE",
    "REFERENCE",
    "SecretsByReference",
    "WithoutPlainSecrets",
    "masked_but_references",
    "plain_secrets",
    "without_plain_secrets",
]

REFERENCE = re.compile(r"\{\{\s*prefect\.blocks\.secret\.([\w\-]+)\s*\}\}")
"""What stands for the value of a Secret block."""

ADVICE = (
    "Prefect would store it as it is. Save it as a Secret block (in the Prefect UI under Blocks), and write "
    "{{ prefect.blocks.secret.NAME }} instead."
)


def plain_secrets(value: Any, path: str = "", *, is_named: bool = False) -> Iterator[str]:
    """Where a form has secrets that are not references to Secret blocks.

    Args:
        value: What was typed in.
        path: What it is called.
        is_named: Whether it is a secret by its name.

    Example:
        >>> block = "{{ prefect.blocks.secret.warehouse }}"
        >>> list(plain_secrets({"lr": 0.1, "db": [{"password": "x"}], "api_key": block, "url": "ftp://ada:x@host"}))
        ['db[0].password', 'url']
    """
    if isinstance(value, Mapping):
        if is_named and "$ref" in value:  # the other way in which a form refers to a block
            return
        for key, item in value.items():
            inner = f"{path}.{key}" if path else str(key)
            yield from plain_secrets(item, inner, is_named=is_named or is_secret(str(key), item))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from plain_secrets(item, f"{path}[{index}]", is_named=is_named)
    elif _is_plain_secret(value, is_named):
        yield path


def masked_but_references(value: Any, *, is_named: bool = False) -> Any:
    """A copy of a config that can be stored: like :func:`trainlib._secrets.masked`, but references to blocks stay.

    Example:
        >>> masked_but_references({"password": "x", "api_key": "{{ prefect.blocks.secret.warehouse }}"})
        {'password': '********', 'api_key': '{{ prefect.blocks.secret.warehouse }}'}
    """
    if isinstance(value, dict):
        if is_named and "$ref" in value:
            return value
        return {
            key: masked_but_references(item, is_named=is_named or is_secret(str(key), item))
            for key, item in value.items()
        }
    if type(value) in (list, tuple):
        return type(value)(masked_but_references(item, is_named=is_named) for item in value)
    if isinstance(value, SecretText):
        return MASK
    if not _is_plain_secret(value, is_named):
        return value
    return MASK if is_named else masked_uri(value)


def _is_plain_secret(value: Any, is_named: bool) -> bool:
    if isinstance(value, str):
        text = REFERENCE.sub("", value)
        if text != value and is_named:
            return False
        return bool(text) and (is_named or ("://" in text and masked_uri(text) != text))
    return is_named and isinstance(value, (int, float, bytes)) and not isinstance(value, bool)


# The same rules as patterns, for Prefect's server. Names are those of trainlib._secrets.is_secret, in the spellings db_password,
# DB_PASSWORD and dbPassword.
_REFERENCE_PATTERN = r"^$|\{\{ *prefect\.blocks\.secret\."
_PASSWORD_IN_URI = r"://[^\s/?#@:]*:(?!\{\{)[^\s/?#@]+@"


def _named(*names: tuple[str, ...]) -> str:
    """A pattern for keys that contain one of some names, each given as its words."""
    patterns = []
    for words in names:
        apart, upper = "[^A-Za-z0-9]*", "[^A-Za-z0-9]+".join(word.upper() for word in words)
        lower = apart.join(f"[{word[0]}{word[0].upper()}]{word[1:]}" for word in words)
        patterns.append(rf"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z])){lower}s?(?![a-z])")
        patterns.append(rf"(?<![A-Za-z]){upper}S?(?![A-Za-z])")
    return "|".join(patterns)


SECRET_KEY = _named(
    ("password",),
    ("passphrase",),
    ("secret",),
    ("api", "key"),
    ("access", "key"),
    ("private", "key"),
    ("credential",),
)
TOKEN_KEY = _named(("token",)).replace("s?", "").replace("S?", "")


def _defined(name: str, schema_of: Callable[[JsonSchemaValue, GetJsonSchemaHandler], JsonSchemaValue]) -> CoreSchema:
    """Something of any type, whose JSON schema is a definition of its own, so that it can refer to itself."""
    reference = f"{__name__}.{name}:0"

    def schema(core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return schema_of(handler(core_schema.definition_reference_schema(reference)), handler)

    itself = core_schema.any_schema(ref=reference, metadata={"pydantic_js_functions": [schema]})
    return core_schema.definitions_schema(itself, [])  # within it, pydantic looks at the ref and at the metadata


def _only_references(itself: JsonSchemaValue, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    plain = {
        "type": ["string", "boolean", "null", "array", "object"],
        "pattern": _REFERENCE_PATTERN,
        "items": itself,
        "additionalProperties": itself,
    }
    return {"if": {"type": "object", "required": ["$ref"]}, "else": plain}


def _no_plain_secrets(itself: JsonSchemaValue, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    return {
        "patternProperties": {
            SECRET_KEY: handler(_REFERENCES),
            TOKEN_KEY: {"pattern": _REFERENCE_PATTERN, "if": {}, "then": itself},
        },
        "additionalProperties": itself,
        "items": itself,
        "not": {"type": "string", "pattern": _PASSWORD_IN_URI},
    }


_REFERENCES = _defined("SecretByReference", _only_references)
_SETTINGS = _defined("SettingsWithoutSecrets", _no_plain_secrets)


def without_plain_secrets(
    schema: JsonSchemaValue, handler: GetJsonSchemaHandler, values: CoreSchema = _SETTINGS
) -> JsonSchemaValue:
    """The JSON schema of a field, which then refuses secrets. Prefect's pages show it as before."""
    # A condition that always holds: its branch is checked beside the rest, and an error in it has the path of its setting.
    return {**schema, "if": {}, "then": handler(values)}


class WithoutPlainSecrets:
    """Marks a parameter of a flow, or a field of a form: ``Annotated[dict[str, Any], WithoutPlainSecrets()]``."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return without_plain_secrets(handler(core), handler)


class SecretsByReference:
    """The same for a field all of whose values are secret, whatever they are called."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return without_plain_secrets(handler(core), handler, _REFERENCES)
