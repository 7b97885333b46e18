"""What commands print: JSON for programs, tables and lines for people."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, TypeVar

__all__ = ["as_json", "emit", "is_terminal", "line", "only_result_on_stdout", "print_json", "table"]

# Wide enough that nothing is cut where nobody sees the edge: in a file, or in a pipe.
_NO_EDGE = 100_000

T = TypeVar("T")


def emit(value: T, is_json: bool, show: Callable[[T], None]) -> None:
    """Print a value: as JSON, or as ``show`` prints it."""
    if is_json:
        print_json(value)
    else:
        show(value)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(as_json(value), indent=2))


def as_json(value: Any) -> Any:
    """A value in JSON's types: a dataclass as a dict, a time in ISO 8601. JSON has no NaN and no infinity: they are null.

    Example:
        >>> from pathlib import Path
        >>> as_json({"loss": float("nan"), "folder": Path("/tmp"), "scores": (1, 2.5)})
        {'loss': None, 'folder': '/tmp', 'scores': [1, 2.5]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def line(text: str = "") -> None:
    """Print a line as it is, however long."""
    _console().print(text, soft_wrap=True, markup=False)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], folded: Collection[str]) -> None:
    """Print a table. On a terminal, long cells of the columns in ``folded`` are folded; elsewhere none are."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column not in folded)
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    console = _console()
    if is_terminal():
        console.print(made)
        return
    with console.capture() as shown:
        console.print(made)
    for each in shown.get().splitlines():
        print(each.rstrip())  # a table is padded to its widest cell


def is_terminal() -> bool:
    """Whether a person sees what is printed, at once, and with an edge."""
    return sys.stdout.isatty()


@contextmanager
def only_result_on_stdout(is_json: bool) -> Iterator[None]:
    """With ``--json``, send whatever a training prints to standard error."""
    if not is_json:
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, width=None if is_terminal() else _NO_EDGE)
