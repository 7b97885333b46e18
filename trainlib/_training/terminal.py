"""What a person sees in the terminal: the workers' lines, and one progress line below them."""

from __future__ import annotations

import math
import sys
import time
from pprint import pformat
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from trainlib._autofilled import as_reported
from trainlib._flat import flattened
from trainlib._json_text import as_json, text_of
from trainlib._secrets import masked

__all__ = ["Terminal", "compact", "in_full"]

_REFRESH_S = 0.25
_LINE_EVERY_S = 5.0
# Without a terminal, so many iterations have a line each. After that, there is one every few seconds.
_LINES_AT_FIRST = 50
_LONGEST_VALUE = 30
_WIDTH = 100


class Terminal:
    """Shows a training. The progress line is live on a terminal; elsewhere there is a line for each of the first iterations,
    and then one now and then.

    What workers print, and warnings, are shown at any ``verbose``: 0 shows nothing else, 1 progress, 2 a line for each result, and 3 each
    result in full.
    """

    def __init__(self, name: str, verbose: int = 1) -> None:
        self._name = name
        self._verbose = verbose
        self._console = Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None
        self._started = self._shown = time.monotonic()
        self._latest: tuple[int, int | None, dict[str, Any]] | None = None
        self._lines = 0
        self._is_shown = True
        """Whether the latest result has a line that stays."""

    def say(self, text: str) -> None:
        if self._verbose:
            self.warn(text)

    def warn(self, text: str) -> None:
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
        if is_error or self._live is not None:
            self._console.print(Text.assemble((f"[rank {rank}] ", "dim"), text), soft_wrap=True)
        else:
            print(f"[rank {rank}] {text}", flush=True)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        if not self._verbose:
            return
        self._latest, self._is_shown = (iteration, total, metrics), False
        now = time.monotonic()
        if self._verbose > 1:
            self._print_line()
            if self._verbose > 2:
                self._console.print(in_full(metrics), soft_wrap=True)
        elif self._console.is_terminal:
            if now - self._shown >= _REFRESH_S:
                self._go_live().update(self._line(), refresh=True)
                self._shown = now
        elif self._lines < _LINES_AT_FIRST or now - self._shown >= _LINE_EVERY_S:
            self._print_line()
            self._shown = now

    def close(self, *, succeeded: bool) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._latest is not None and not self._is_shown:
            self._print_line()
        self._latest = None

    def _print_line(self) -> None:
        self._console.print(self._line(), soft_wrap=True)
        self._lines += 1
        self._is_shown = True

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
    """Metrics on one line, without what is filled in automatically.

    Example:
        >>> compact({"loss": 0.123456, "epoch": 3, "val": {"phase": "warm-up", "per class": [0.5] * 10}, "pid": 7})
        'loss=0.1235 epoch=3 val/phase=warm-up val/per class=[10 values]'
    """
    shown: list[str] = []
    for name, value in flattened(as_reported(metrics)).items():
        if len(shown) == most:
            break
        shown.append(f"{name}={_short(value)}")
    return " ".join(shown)


def in_full(result: dict[str, Any]) -> Text:
    """A result with everything that is filled in automatically, on several lines. Secrets of the config are masked."""
    shown = {**result, "config": masked(result.get("config", {}))}
    try:
        return Text(pformat(shown, width=_WIDTH))
    except Exception:  # the repr of an object of the user's own
        return Text(as_json(shown, indent=1))


def _short(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    text = " ".join(text_of(value, str).split())
    if len(text) <= _LONGEST_VALUE:
        return text
    count = getattr(value, "size", None) or (len(value) if isinstance(value, (list, tuple, dict, set)) else None)
    return f"[{count} values]" if isinstance(count, int) else f"{text[: _LONGEST_VALUE - 1]}…"
