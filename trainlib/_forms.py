"""How settings become sections of a form: Prefect builds the form of a deployment from their JSON schema.

Both of Prefect's UIs show an optional setting as a choice between its type and "None", and send the whole default of a
section, with what it does not show. Here, an optional setting is a field that may stay empty, and a section's default is
empty too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, GetJsonSchemaHandler, SerializerFunctionWrapHandler, create_model, model_serializer
from pydantic import model_validator as _model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

__all__ = ["Section", "plain", "section_of", "tidy"]

C = TypeVar("C", bound=BaseModel)


class Section(BaseModel):
    """Makes a section of a settings class: ``class ScalingSection(Section, ScalingConfig)``.

    It is validated as the settings are, and takes them too. As JSON it has only what was set.

    Example:
        >>> from trainlib import CheckpointConfig
        >>> class CheckpointSection(Section, CheckpointConfig):
        ...     hidden = ("checkpoint_frequency", "checkpoint_at_end", "max_staged", "max_staged_gib")
        >>> list(CheckpointSection.model_json_schema()["properties"])
        ['num_to_keep', 'checkpoint_score_attribute', 'checkpoint_score_order']
        >>> CheckpointSection.model_validate(CheckpointConfig(num_to_keep=2)).model_dump()
        {'num_to_keep': 2}
    """

    hidden: ClassVar[tuple[str, ...]] = ()
    """Settings that the form asks for elsewhere, or that only Python can pass."""

    @_model_validator(mode="before")
    @classmethod
    def _take_plain_settings(cls, given: Any) -> Any:
        if isinstance(given, BaseModel) and not isinstance(given, cls) and issubclass(cls, type(given)):
            return _set_in(given)
        return given

    @model_serializer(mode="wrap")
    def _serialize_what_is_set(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name in self.model_fields_set}

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference = handler(core)
        schema = handler.resolve_ref_schema(reference)
        for name in cls.hidden:
            schema["properties"].pop(name, None)
        tidy(schema)
        return reference


def _set_in(settings: BaseModel) -> dict[str, Any]:
    """What was set, as it is."""
    return {name: getattr(settings, name) for name in settings.model_fields_set}


def plain(section: Section) -> Any:
    """The settings that a section was made of, e.g. a ScalingConfig.

    Example:
        >>> from trainlib import CheckpointConfig
        >>> plain(section_of(CheckpointConfig)(num_to_keep=2))
        CheckpointConfig(num_to_keep=2)
    """
    settings: Callable[..., Any] = type(section).__bases__[-1]
    return settings(**_set_in(section))


@cache
def section_of(settings: type[C]) -> type[Any]:
    """A section with all settings of a class."""
    return create_model(settings.__name__, __base__=(Section, settings), __doc__=settings.__doc__)


def tidy(schema: JsonSchemaValue) -> None:
    """Give fields their order, let optional ones stay empty, and drop the examples that are for Python."""
    if description := schema.get("description"):
        schema["description"] = description.partition("Example:")[0].strip().replace("``", "`")
    for position, field in enumerate(schema.get("properties", {}).values()):
        field.setdefault("position", position)
        kinds = field.get("anyOf", [])
        filled = [kind for kind in kinds if kind != {"type": "null"}]
        if len(filled) == len(kinds):
            continue
        del field["anyOf"]
        field.update(filled[0] if len(filled) == 1 else {"anyOf": filled})
        if "default" in field and field["default"] is None:
            del field["default"]
