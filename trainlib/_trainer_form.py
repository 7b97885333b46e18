"""A trainer as part of a form: a choice of the rooms' trainers, each with its own fields."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Self, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
    create_model,
    field_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from trainlib import _rooms as rooms
from trainlib._form_secrets import without_plain_secrets
from trainlib._forms import Section, plain, section_of, tidy
from trainlib._rooms import FUNCTION, Room
from trainlib._trainable import load_trainable, path_of
from trainlib.config import ScalingConfig

__all__ = ["FunctionForm", "OwnArgumentsForm", "TrainerChoice", "TrainerForm", "form_of", "form_showing"]


class TrainerForm(BaseModel):
    """What a trainer of one kind needs, besides workers, data, and where the training is kept.

    A room whose trainer needs other things than a training function has a subclass of its own, and names it in its
    declaration (:attr:`trainlib._rooms.Room.form`).
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)  # which may be a password

    room: ClassVar[Room]

    kind: str

    _given: Any = PrivateAttr(default=None)
    """The trainer or tuner of this process that the form shows, for people only."""

    @property
    def title(self) -> str:
        """What the trainer is called."""
        return self.room.trainer.rpartition(":")[2]

    def arguments(self) -> dict[str, Any]:
        """The trainer's arguments, by name.

        Raises:
            ValueError: something cannot be made of what was typed in.
        """
        raise NotImplementedError

    def with_target(self, target: str | None) -> Self:
        """The same trainer for data with this column to predict."""
        raise NotImplementedError

    def gang_of(self, asked: ScalingConfig) -> ScalingConfig:
        """The workers of this trainer, where it is compared with others that have these."""
        return asked

    @classmethod
    def showing(cls, trainer: Any, shown: Callable[[Any], Any]) -> Self:
        """The form that shows a trainer of this process. Not all of that could be typed in.

        Args:
            trainer: The trainer.
            shown: Makes values readable, and masks secrets.
        """
        raise NotImplementedError

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference = handler(core)
        schema = handler.resolve_ref_schema(reference)
        # In Prefect's forms, trainers are tabs in one row, which has no room for ten long names: the last ones were out of sight.
        schema["title"] = cls.room.trainer.rpartition(":")[2].removesuffix("Trainer")
        fields = schema["properties"]
        fields["kind"] = {
            "type": "string",
            "enum": [cls.room.name],  # a list of one, so that nobody types something else
            "default": cls.room.name,
            "title": "Kind",
            "description": "What this trainer is called. Choose another one above.",
            "position": len(fields),
        }
        tidy(schema)
        return reference


class FunctionForm(TrainerForm):
    """Runs a training function in many processes at once."""

    room: ClassVar[Room] = FUNCTION

    train_loop: str = Field(
        description="The training function, as module:function. It is marked with @trainlib.trainable, or its module is "
        "allowed where the flow runs.",
        json_schema_extra={"position": 0},
    )
    train_loop_config: dict[str, Any] = Field(
        default={},
        description="What the training function is called with. Prefect stores it as it is: instead of a password, write "
        "{{ prefect.blocks.secret.NAME }}, which refers to a Secret block.",
        json_schema_extra={"position": 1},
    )

    @field_validator("train_loop")
    @classmethod
    def _is_a_path(cls, path: str) -> str:
        # Not a pattern, which Prefect would check too: it does not say which field of a choice is not valid.
        if not re.fullmatch(r"[\w.]+:[\w.<>]+", path):
            raise ValueError(
                f"train_loop is {path[:200]!r}: write it as module:function, e.g. my_package.digits:train_func"
            )
        return path

    def arguments(self) -> dict[str, Any]:
        framework = getattr(self, self.room.config_argument, None)
        return {
            "train_loop_per_worker": load_trainable(self.train_loop),
            "train_loop_config": self.train_loop_config,
            **({self.room.config_argument: plain(framework)} if isinstance(framework, Section) else {}),
        }

    def with_target(self, target: str | None) -> Self:
        config = {"target": target, **self.train_loop_config}
        return self.model_copy(update={"train_loop_config": config})

    @classmethod
    def showing(cls, trainer: Any, shown: Callable[[Any], Any]) -> Self:
        values = {
            "kind": trainer.backend_config.framework,
            "train_loop": path_of(trainer.train_loop_per_worker),
            "train_loop_config": shown(dict(trainer.train_loop_config or {})),
        }
        if cls.room.config_argument in cls.model_fields:
            values[cls.room.config_argument] = _shown_section(cls.room, trainer.backend_config, shown)
        return cls.model_construct(**values)  # type: ignore[return-value]


def _shown_section(room: Room, settings: BaseModel, shown: Callable[[Any], Any]) -> Any:
    """The framework's settings of a trainer of this process."""
    typed = shown(settings.model_dump(mode="json", exclude_unset=True))
    return section_of(room.config_class).model_construct(**typed)


class OwnArgumentsForm(TrainerForm):
    """Asks for the arguments of a trainer that brings its training function. A room's form adds them as fields of their names."""

    def arguments(self) -> dict[str, Any]:
        framework = getattr(self, self.room.config_argument, None)
        return {
            **{name: getattr(self, name) for name in self._own_fields()},
            **({self.room.config_argument: plain(framework)} if isinstance(framework, Section) else {}),
        }

    def with_target(self, target: str | None) -> Self:
        """The same trainer, with the target as its ``label_column`` if that is empty."""
        if not target or _LABEL not in type(self).model_fields or getattr(self, _LABEL):
            return self
        return self.model_copy(update={_LABEL: target})

    @classmethod
    def showing(cls, trainer: Any, shown: Callable[[Any], Any]) -> Self:
        given = trainer.train_loop_config or {}
        own = {name: shown(given[name]) for name in cls._own_fields() if name in given}
        if cls.room.config_argument in cls.model_fields:
            own[cls.room.config_argument] = _shown_section(cls.room, trainer.backend_config, shown)
        return cls.model_construct(kind=cls.room.name, **own)  # type: ignore[return-value]

    @classmethod
    def _own_fields(cls) -> list[str]:
        return [name for name in cls.model_fields if name in cls.room.own_arguments]


_LABEL = "label_column"


def form_showing(trainer: Any, shown: Callable[[Any], Any]) -> TrainerForm:
    """The form that shows a trainer of this process, whether it runs a function of the user's or its own."""
    room = rooms.room_of(trainer.backend_config)
    kind = form_of(room) if trainer.settings.has_own_function else function_form_of(room)
    return kind.showing(trainer, shown)


@cache
def form_of(room: Room) -> type[TrainerForm]:
    """The form for a room's trainer: its own, or a training function and the framework's settings.

    Example:
        >>> list(form_of(rooms.load("torch")).model_fields)
        ['kind', 'train_loop', 'train_loop_config', 'torch_config']
    """
    if room.form is not None:
        module, _, name = room.form.partition(":")
        own: type[TrainerForm] = getattr(importlib.import_module(module), name)
        return own
    return function_form_of(room)


@cache
def function_form_of(room: Room) -> type[TrainerForm]:
    """A form for a room's trainer that asks for a training function and the framework's settings."""
    fields: dict[str, Any] = {"kind": (Literal[room.name], room.name)}
    if room.config_class.model_fields:
        section = section_of(room.config_class)
        about = (section.__doc__ or "").partition("\n")[0]
        fields[room.config_argument] = (
            section,
            Field(
                default_factory=section,
                title=room.config_argument,
                description=about,
                json_schema_extra={"position": 2},
            ),
        )
    form = create_model(f"{room.trainer.rpartition(':')[2]}Form", __base__=FunctionForm, **fields)
    form.room = room
    form.__doc__ = _summary_of(room)
    return form


def _summary_of(room: Room) -> str:
    return (room.trainer_class().__doc__ or "").partition("\n")[0]


class _ByKind:
    """Makes a choice of all rooms' forms, by their ``kind``. The rooms are those at the time when a form is built."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Prefect's UIs show the first form that has the most of a value's fields. Those of a plain function all forms have.
        names = sorted(rooms.choices(), key=lambda name: name != FUNCTION.name)
        forms = tuple(form_of(rooms.load(name)) for name in names)
        choice = handler.generate_schema(Annotated[Union[forms], Field(discriminator="kind")])  # noqa: UP007
        return core_schema.no_info_wrap_validator_function(_take_form, choice)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        schema.pop("discriminator")
        schema["anyOf"] = schema.pop("oneOf")  # one of Prefect's UIs knows no oneOf
        # Here, and not in each form: an error in one of several forms does not say in which of its fields it is.
        return without_plain_secrets(schema, handler)


def _take_form(given: Any, validate: Any) -> Any:
    """A form of this process as it is: what it shows of a trainer may not be valid."""
    return given if isinstance(given, TrainerForm) else validate(given)


TrainerChoice = Annotated[TrainerForm, _ByKind()]
"""A field of a form, or a parameter of a flow, that describes a trainer."""
