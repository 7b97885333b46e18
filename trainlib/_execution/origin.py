"""What a training function raised, and where: two failures of the same origin are one bug."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlib._execution.reset.loaded import is_of_a_library
from trainlib._execution.stacks.frames import Frame

__all__ = ["Origin", "origin_of"]

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True)
class Origin:
    """The class of an exception, and the innermost line of the user's own code that led to it."""

    exception: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.exception} in {self.file}, line {self.line}"


def origin_of(error: BaseException, frames: Sequence[Frame]) -> Origin | None:
    """Where the training function raised ``error``; ``frames`` are the calls that led to it, the innermost last.

    It is None if no call led to it: then it was found from outside that the function cannot go on.

    Example:
        >>> import json
        >>> frames = [Frame("train.py", 7, "train_func"), Frame(json.__file__, 346, "loads")]
        >>> print(origin_of(KeyError("x"), frames))
        builtins.KeyError in train.py, line 7
    """
    if not frames:
        return None
    own = [frame for frame in frames if not _is_library(frame.file)]
    innermost = (own or frames)[-1]
    kind = type(error)
    return Origin(f"{kind.__module__}.{kind.__qualname__}", innermost.file, innermost.line)


def _is_library(file: str) -> bool:
    return file.startswith((_PACKAGE, "<frozen ")) or is_of_a_library(file)
