"""What a person sees in the terminal: the workers' lines, and one progress line below them."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

__all__ = ["Terminal", "compact"]

_REFRESH_S = 0.25
_LINE_EVERY_S = 5.0


class Terminal:
    """Shows a training. The progress line is live on a terminal, and a line now and then elsewhere."""

    def __init__(self, name: str, verbose: int = 1) -> None:
        self._name = name
        self._verbose = verbose
        self._console = Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None
        self._started = self._shown = time.monotonic()
        self._latest: tuple[int, int | None, dict[str, Any]] | None = None

    def say(self, text: str) -> None:
        if self._verbose:
            self._console.print(Text(text, style="yellow"), soft_wrap=True)

    def status(self, text: str) -> None:
        if not self._verbose:
            return
        line = Text.assemble((self._name, "bold"), f"  {text}")
        if self._console.is_terminal:
            self._go_live().update(line, refresh=True)
        else:
            self._console.print(line, soft_wrap=True)

    def output(self, rank: int, text: str, is_error: bool) -> None:
        if not self._verbose:
            return
        if is_error or self._live is not None:
            self._console.print(Text.assemble((f"[rank {rank}] ", "dim"), text), soft_wrap=True)
        else:
            print(f"[rank {rank}] {text}", flush=True)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        if not self._verbose:
            return
        self._latest = iteration, total, metrics
        if self._verbose > 1:
            self._console.print(self._line(), soft_wrap=True)
            return
        now = time.monotonic()
        if self._console.is_terminal:
            if now - self._shown >= _REFRESH_S:
                self._go_live().update(self._line(), refresh=True)
                self._shown = now
        elif now - self._shown >= _LINE_EVERY_S:
            self._console.print(self._line(), soft_wrap=True)
            self._shown = now

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._latest is not None and self._verbose == 1:
            self._console.print(self._line(), soft_wrap=True)
            self._latest = None

    def _go_live(self) -> Live:
        if self._live is None:
            # Refreshed by hand: a thread that does it would take time from the training.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self._live

    def _line(self) -> Text:
        assert self._latest is not None
        iteration, total, metrics = self._latest
        of = f"/{total}" if total else ""
        seconds = time.monotonic() - self._started
        return Text.assemble(
            (self._name, "bold"), f"  iteration {iteration}{of}  {compact(metrics)}  ", (f"{seconds:.0f} s", "dim")
        )


def compact(metrics: dict[str, Any], most: int = 6) -> str:
    """Metrics on one line.

    Example:
        >>> compact({"loss": 0.123456, "epoch": 3})
        'loss=0.1235 epoch=3'
    """
    shown = []
    for name, value in list(metrics.items())[:most]:
        is_float = isinstance(value, float) and math.isfinite(value)
        shown.append(f"{name}={value:.4g}" if is_float else f"{name}={value}")
    return " ".join(shown)
