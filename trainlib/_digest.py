"""Digests of functions and values that are equal in all processes, so that two trainings can be compared.

A pickle would not do: that of a function in ``__main__`` differs from process to process, and that of a function in a
module has no code at all.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pydantic import BaseModel

__all__ = ["digest"]

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
# Where code is that the user did not write. It is known by its name: its version is not what was changed.
_INSTALLED = tuple(
    os.path.realpath(folder) + os.sep
    for folder in {
        *site.getsitepackages(),
        site.getusersitepackages(),
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        os.path.dirname(__file__),
    }
)


def digest(value: Any) -> str:
    """A digest of a function, with the code of all functions of the user's that it calls, or of any other value.

    Comments and line numbers do not count.

    Example:
        >>> digest({"lr": 0.1, "layers": (1, 2)}) == digest({"layers": (1, 2), "lr": 0.1})
        True
        >>> digest({"lr": 0.1}) == digest({"lr": 0.2})
        False
    """
    found = hashlib.sha256()
    for part in _parts(value, set()):
        found.update(part.encode())
        found.update(b"\0")
    return found.hexdigest()[:16]


def _parts(value: Any, inside: set[int]) -> Iterator[str]:
    """What a value is made of, as text. ``inside`` has what is being looked at, since values can contain themselves."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        yield f"{type(value).__name__} {value!r}"
        return
    if id(value) in inside:
        yield "itself"
        return
    inside.add(id(value))
    yield from _parts_of_object(value, inside)
    inside.discard(id(value))


def _parts_of_object(value: Any, inside: set[int]) -> Iterator[str]:
    match value:
        case FunctionType():
            yield from _parts_of_function(value, inside)
        case MethodType():
            yield from _parts(value.__func__, inside)
            yield from _parts(value.__self__, inside)
        case functools.partial():
            yield from _parts((value.func, value.args, value.keywords), inside)
        case CodeType():
            yield from _parts_of_code(value, inside)
        case ModuleType():
            yield f"module {value.__name__}"
        case type():
            yield from _parts_of_class(value, inside)
        case Enum():
            yield f"{type(value).__qualname__}.{value.name}"
        case PurePath():
            yield f"path {value}"
        case Mapping():
            yield f"mapping {len(value)}"
            for key in sorted(value, key=repr):
                yield from _parts(key, inside)
                yield from _parts(value[key], inside)
        case list() | tuple():
            yield f"{type(value).__name__} {len(value)}"
            for item in value:
                yield from _parts(item, inside)
        case set() | frozenset():
            yield f"set {len(value)}"
            yield from sorted("\0".join(_parts(item, inside)) for item in value)
        case BaseModel():
            yield from _parts_of_class(type(value), inside)
            yield from _parts({name: getattr(value, name) for name in type(value).model_fields}, inside)
        case _ if is_dataclass(value):
            yield from _parts_of_class(type(value), inside)
            yield from _parts({each.name: getattr(value, each.name) for each in fields(value)}, inside)
        case _ if hasattr(value, "dtype") and hasattr(value, "tobytes"):  # an array
            yield f"array {value.dtype} {getattr(value, 'shape', ())}"
            yield hashlib.sha256(value.tobytes()).hexdigest()
        case _:
            yield from _parts_of_class(type(value), inside)
            if _is_written_by_user(type(value).__module__) and hasattr(value, "__dict__"):
                yield from _parts(vars(value), inside)
            else:
                yield _shown(value)
            if callable(wrapped := getattr(value, "__wrapped__", None)):
                yield from _parts(wrapped, inside)


def _shown(value: Any) -> str:
    try:
        return _ADDRESS.sub("", repr(value))
    except Exception:  # its class is known, at least
        return "unreadable"


def _parts_of_function(function: FunctionType, inside: set[int]) -> Iterator[str]:
    """The code of a function and of what it uses: defaults, closures, and globals of the user's."""
    is_users = _is_written_by_user(function.__module__)
    if is_users:
        yield from _parts_of_code(function.__code__, inside)
        yield from _parts((function.__defaults__, function.__kwdefaults__), inside)
    else:
        yield f"function {function.__module__}.{function.__qualname__}"
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name  # also of a library's function: it may be a wrapper around one of the user's
        try:
            yield from _parts(cell.cell_contents, inside)
        except ValueError:  # a variable that has no value yet
            yield "unset"
    used = sorted(_names(function.__code__)) if is_users else []
    for name in used:
        if name in function.__globals__:
            yield name
            yield from _parts_of_global(function.__globals__[name], used, inside)


def _parts_of_global(value: Any, used: list[str], inside: set[int]) -> Iterator[str]:
    """A global that a function uses. Of a module of the user's, that is what may be meant by ``module.name``."""
    if isinstance(value, ModuleType) and _is_written_by_user(value.__name__):
        if id(value) in inside:
            return
        inside.add(id(value))
        for name in used:
            attribute = vars(value).get(name)
            if isinstance(attribute, (FunctionType, type, bool, int, float, str)):
                yield f"{value.__name__}.{name}"
                yield from _parts(attribute, inside)
        inside.discard(id(value))
        return
    is_plain = value is None or isinstance(value, (bool, int, float, str, bytes, tuple, list, dict, set, frozenset))
    if is_plain or isinstance(value, (FunctionType, MethodType, type, ModuleType, functools.partial, PurePath, Enum)):
        yield from _parts(value, inside)
    else:  # e.g. a logger or an open file: what it holds may change while the code stays the same
        yield f"a {type(value).__qualname__}"


def _parts_of_class(kind: type, inside: set[int]) -> Iterator[str]:
    yield f"class {kind.__module__ if kind.__module__ != '__mp_main__' else '__main__'}.{kind.__qualname__}"
    if not _is_written_by_user(kind.__module__):
        return
    for name, member in sorted(vars(kind).items()):
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if isinstance(function, FunctionType):
            yield name
            yield from _parts(function, inside)


def _parts_of_code(code: CodeType, inside: set[int]) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join(code.co_names)
    for constant in code.co_consts:
        yield from _parts(constant, inside)


def _names(code: CodeType) -> set[str]:
    """The names of globals and attributes in a function and in those defined inside it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


@functools.lru_cache
def _is_written_by_user(module_name: str | None) -> bool:
    """Whether a module is the user's own: not Python's, not an installed package, and not part of trainlib."""
    if module_name is None or module_name in ("__main__", "__mp_main__"):
        return True
    if module_name.partition(".")[0] in {*sys.stdlib_module_names, "trainlib"}:
        return False
    file = getattr(sys.modules.get(module_name), "__file__", None)
    return file is not None and not os.path.realpath(file).startswith(_INSTALLED)
