"""What is shown of a training, wherever people look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["Display", "Screen"]


class Screen(Protocol):
    """One place where a training is shown, such as the terminal or Prefect's log."""

    def say(self, text: str) -> None:
        """Show a remark, e.g. that the training waits for room."""

    def warn(self, text: str) -> None:
        """Show what a person has to know, e.g. that a callback does not work. It is shown at any ``verbose``."""

    def status(self, text: str) -> None:
        """Show what is being done now."""

    def output(self, rank: int, text: str, is_error: bool) -> None:
        """Show a line that a rank printed."""

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        """Show that an iteration is done; ``metrics`` is its result, with everything that is filled in automatically."""

    def close(self, *, succeeded: bool) -> None:
        """Show the last state: nothing more comes."""


class Display:
    """Shows a training on several screens at once."""

    def __init__(self, screens: Sequence[Screen] = ()) -> None:
        self._screens = list(screens)

    def add(self, screen: Screen) -> bool:
        """Show what comes on this screen too, unless there is one of its kind. Returns whether it was added."""
        if any(isinstance(present, type(screen)) for present in self._screens):
            return False
        self._screens.append(screen)
        return True

    def say(self, text: str) -> None:
        for screen in self._screens:
            screen.say(text)

    def warn(self, text: str) -> None:
        for screen in self._screens:
            screen.warn(text)

    def status(self, text: str) -> None:
        for screen in self._screens:
            screen.status(text)

    def output(self, rank: int, text: str, is_error: bool) -> None:
        for screen in self._screens:
            screen.output(rank, text, is_error)

    def progress(self, iteration: int, total: int | None, metrics: dict[str, Any]) -> None:
        for screen in self._screens:
            screen.progress(iteration, total, metrics)

    def close(self, *, succeeded: bool) -> None:
        for screen in self._screens:
            screen.close(succeeded=succeeded)
