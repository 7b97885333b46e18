"""What a person sees in a notebook: what workers print, and one progress line that moves."""

from __future__ import annotations

import sys
import time
from typing import Any

from trainlib._training.display import Screen
from trainlib._training.terminal import Terminal, compact, in_full

__all__ = ["MovingLine", "Notebook", "is_notebook", "screen_for"]

_REFRESH_S = 0.25


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def screen_for(name: str, verbose: int) -> Screen:
    """Where a training of this process is shown."""
    return Notebook(name, verbose) if is_notebook() else Terminal(name, verbose)


class MovingLine:
    """A line in the output of a cell that is replaced by the next one."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown = 0.0
        self._pending: str | None = None

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Show a text instead of the one before, now or with one of the next."""
        self._pending = text
        if at_once or time.monotonic() - self._shown >= _REFRESH_S:
            self.flush()

    def flush(self) -> None:
        """Show the latest text, if it is not shown yet."""
        if self._pending is None:
            return
        from IPython.display import display

        content = {"text/plain": self._pending}
        if self._handle is None:
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
        self._pending, self._shown = None, time.monotonic()


class Notebook:
    """Shows a training in the output of a cell. With ``verbose=2``, each result has a line of its own as well, and with 3 it is
    there in full."""

    def __init__(self, name: str, verbose: int = 1) -> None:
        self._name = name
        self._verbose = verbose
        self._line = MovingLine()
        self._started = time.monotonic()

    def say(self, text: str) -> None:
        if self._verbose:
            self.warn(text)

    def warn(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def status(self, text: str) -> None:
        if self._verbose:
            self._line.show(f"{self._name}  {text}", at_once=True)

    def output(self, rank: int, text: str, is_error: bool) -> None:
        print(f"[rank {rank}] {text}", file=sys.stderr if is_error else sys.stdout, flush=True)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        if not self._verbose:
            return
        of = f"/{total}" if total else ""
        seconds = time.monotonic() - self._started
        line = f"{self._name}  iteration {iteration}{of}  {compact(metrics)}  {seconds:.0f} s"
        self._line.show(line)
        if self._verbose > 1:
            print(line, flush=True)
        if self._verbose > 2:
            print(in_full(metrics), flush=True)

    def close(self, *, succeeded: bool) -> None:
        self._line.flush()
