"""Finds out what in a function or value cannot be pickled, and where it comes from."""

from __future__ import annotations

import dis
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

import cloudpickle

__all__ = ["whats_unpicklable"]

_CAPTURES = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE", "LOAD_GLOBAL", "LOAD_NAME")
_DEEPEST = 20
# Cloudpickle leaves these out, or makes them anew.
_OF_EVERY_CLASS = ("__dict__", "__weakref__", "_abc_impl")


@dataclass(frozen=True)
class _Part:
    """Something that a value is made of."""

    value: Any
    phrase: str = ""
    """How the value has it, e.g. "uses the global variable lock"; empty for what it holds."""
    access: str = ""
    """How to get at it, e.g. ``['lock']``, for what a value holds."""


def whats_unpicklable(value: Any) -> str | None:
    """Says what in ``value`` cannot be pickled, and where it comes from. It goes on after "it cannot be pickled:".

    None if all of it can be pickled. Values themselves are not shown: they may be secrets.

    Example:
        >>> import threading
        >>> whats_unpicklable({"locks": [threading.Lock()]})
        "it holds a _thread.lock in ['locks'][0]: cannot pickle '_thread.lock' object"
    """
    problem = _problem(value)
    if problem is None:
        return None
    parts: list[_Part] = []
    seen = {id(value)}
    while len(parts) < _DEEPEST:
        found = next((part for part in _parts(value) if id(part.value) not in seen and _problem(part.value)), None)
        if found is None:
            break
        parts.append(found)
        value = found.value
        seen.add(id(value))
    return f"{_sentence(parts, value)}: {_problem(value) or problem}"


def _problem(value: Any) -> str | None:
    """The reason why a value cannot be pickled."""
    try:
        cloudpickle.dumps(value)
    except Exception as error:  # pickling runs the code of whatever is pickled
        return str(error).partition("\n")[0] or type(error).__name__
    return None


def _sentence(parts: list[_Part], culprit: Any) -> str:
    """How the culprit is reached, e.g. "it uses the global variable kept, which holds a _thread.lock in ['a']"."""
    kind = type(culprit)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    phrases: list[str] = []
    access = ""
    for part in parts:
        if part.phrase and access:
            phrases.append(f"holds {access}")
        access = "" if part.phrase else access + part.access
        if part.phrase:
            phrases.append(part.phrase)
    phrases.append(f"holds a {name} in {access}" if access else f"is a {name}")
    return "it " + ", which ".join(phrases)


def _parts(value: Any) -> Iterator[_Part]:
    if isinstance(value, FunctionType):
        yield from _parts_of_function(value)
    elif isinstance(value, type):
        for name, member in vars(value).items():
            if name in _OF_EVERY_CLASS:
                continue
            function = getattr(member, "__func__", getattr(member, "fget", member))
            kind = "method" if isinstance(function, FunctionType) else "attribute"
            yield _Part(function, f"has the {kind} {name}")
    else:
        yield from (_Part(item, access=access) for access, item in _held(value))
        yield _Part(type(value), f"is of the class {type(value).__qualname__}")


def _parts_of_function(function: FunctionType) -> Iterator[_Part]:
    around = function.__qualname__.rpartition(".<locals>")[0].rpartition(".<locals>.")[2]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield _Part(cell.cell_contents, f"uses the variable {name} of {around} {_where(function, name)}")
        except ValueError:
            continue  # it has no value yet
    for name in _globals_of(function.__code__):
        if name in function.__globals__:
            yield _Part(function.__globals__[name], f"uses the global variable {name} {_where(function, name)}")
    code = function.__code__
    with_default = code.co_varnames[: code.co_argcount][-len(function.__defaults__ or ()) :]
    defaults = {**dict(zip(with_default, function.__defaults__ or (), strict=False)), **(function.__kwdefaults__ or {})}
    for name, default in defaults.items():
        yield _Part(default, f"has a default for its parameter {name}")
    yield from (_Part(item, access=f".{name}") for name, item in vars(function).items())


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    """What a value holds, and how to get at it."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif isinstance(value, (set, frozenset)):
        yield from (("{...}", item) for item in value)
    elif isinstance(value, MethodType):
        yield from ((f".{name}", getattr(value, name)) for name in ("__self__", "__func__"))
    elif hasattr(value, "func") and hasattr(value, "keywords"):  # a partial
        yield from ((f".{name}", getattr(value, name)) for name in ("func", "args", "keywords"))
    elif is_dataclass(value):
        yield from ((f".{each.name}", getattr(value, each.name, None)) for each in fields(value))
    else:
        yield from ((f".{name}", item) for name, item in getattr(value, "__dict__", {}).items())


def _globals_of(code: CodeType) -> list[str]:
    """The names of globals in a function and in those defined inside it."""
    return list(
        dict.fromkeys(each.argval for each in _instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    )


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)


def _where(function: FunctionType, name: str) -> str:
    """The file, and the line where a function first uses a variable."""
    code = function.__code__
    lines = [
        each.positions.lineno
        for each in _instructions(code)
        if each.argval == name and each.opname in _CAPTURES and each.positions and each.positions.lineno
    ]
    return f"({os.path.basename(code.co_filename)}, line {min(lines, default=code.co_firstlineno)})"
