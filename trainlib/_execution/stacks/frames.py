"""The stacks of one process: read from inside, or from what Python's faulthandler has written."""

from __future__ import annotations

import linecache
import re
import sys
import threading
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from types import FrameType, TracebackType

# Of a recursion without end, the innermost calls tell enough.
_DEEPEST = 100

# The function of a worker that calls the training function.
_CALLER_FILE = ("trainlib", "_execution", "worker.py")
_CALLER_NAME = "_run"


@dataclass(frozen=True)
class Frame:
    """One call of a stack."""

    file: str
    line: int
    function: str
    code: str = ""
    """The line itself, where its file could be read."""

    def __str__(self) -> str:
        code = f"\n    {self.code}" if self.code else ""
        return f'  File "{self.file}", line {self.line}, in {self.function}{code}'

    @property
    def calls_training_function(self) -> bool:
        """Whether it is the call in trainlib from which the training function is called."""
        return self.function == _CALLER_NAME and PurePath(self.file).parts[-3:] == _CALLER_FILE


@dataclass(frozen=True)
class ThreadStack:
    """One thread of a process."""

    name: str
    frames: tuple[Frame, ...]
    """The innermost call is the last."""
    is_training: bool
    """Whether the training function runs in it."""


@dataclass(frozen=True)
class ProcessStacks:
    """All threads of a process that run Python. The one of the training function comes first."""

    threads: tuple[ThreadStack, ...] = ()
    problem: str | None = None
    """Why they could not be read, if so."""

    @classmethod
    def of(cls, threads: Iterable[ThreadStack]) -> ProcessStacks:
        """Put the thread of the training function first."""
        return cls(tuple(sorted(threads, key=lambda thread: not thread.is_training)))

    @property
    def training(self) -> ThreadStack | None:
        """The thread that the training function runs in, if it runs."""
        return self.threads[0] if self.threads and self.threads[0].is_training else None


def own_stacks() -> ProcessStacks:
    """The stacks of this process, except for that of the caller."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return ProcessStacks.of(
        _thread_stack(names.get(ident, f"{ident:#x}"), frame)
        for ident, frame in sys._current_frames().items()
        if ident != threading.get_ident()
    )


def _thread_stack(name: str, innermost: FrameType) -> ThreadStack:
    frames = _frames(traceback.extract_stack(innermost, limit=_DEEPEST))
    outer: FrameType | None = innermost
    while outer is not None:
        code = outer.f_code
        if Frame(code.co_filename, 0, code.co_name).calls_training_function:
            return ThreadStack(name, frames, is_training=True)
        outer = outer.f_back
    return ThreadStack(name, frames, is_training=False)


def frames_of(trace: TracebackType | None) -> tuple[Frame, ...]:
    """The calls that led to an exception."""
    return _frames(traceback.extract_tb(trace, limit=-_DEEPEST))


def _frames(summary: traceback.StackSummary) -> tuple[Frame, ...]:
    return tuple(Frame(each.filename, each.lineno or 0, each.name, each.line or "") for each in summary)


_THREAD = re.compile(r"(?:Thread|Current thread) (0x[0-9a-f]+) .*\(most recent call first\):")
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


def parse_dump(text: str) -> ProcessStacks:
    """The stacks in a text that Python's faulthandler has written. The lines of code are read from their files.

    Example:
        >>> dump = 'Thread 0x00007f92d42a66c0 (most recent call first):\\n  File "train.py", line 6 in f\\n'
        >>> parse_dump(dump).threads[0].frames[0].line
        6
    """
    threads: dict[str, list[Frame]] = {}
    frames: list[Frame] = []
    for line in text.splitlines():
        if found := _THREAD.match(line):
            frames = threads.setdefault(found[1], [])
        elif found := _FRAME.match(line):
            code = linecache.getline(found[1], int(found[2])).strip()
            frames.insert(0, Frame(found[1], int(found[2]), found[3], code))
    return ProcessStacks.of(
        ThreadStack(f"{int(ident, 16):#x}", tuple(frames), any(frame.calls_training_function for frame in frames))
        for ident, frames in threads.items()
        if frames  # otherwise it is a thread of C code, which calls Python only now and then
    )
