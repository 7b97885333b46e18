"""What is set in Python's logging, by logger."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

from trainlib._execution.reset.loaded import is_third_party

__all__ = ["LoggingState"]


@dataclass(frozen=True)
class _Settings:
    handlers: tuple[logging.Handler, ...] = ()
    filters: tuple[Any, ...] = ()
    level: int = logging.NOTSET
    propagate: bool = True
    disabled: bool = False

    @classmethod
    def of(cls, logger: logging.Logger) -> Self:
        return cls(tuple(logger.handlers), tuple(logger.filters), logger.level, logger.propagate, logger.disabled)

    def restore(self, logger: logging.Logger) -> None:
        logger.handlers[:], logger.filters[:] = self.handlers, self.filters
        logger.setLevel(self.level)
        logger.propagate, logger.disabled = self.propagate, self.disabled


@dataclass(frozen=True)
class LoggingState:
    """All loggers, as they are set."""

    root: _Settings
    loggers: dict[str, _Settings]
    disabled: int
    """The level up to which nothing is logged at all."""

    @classmethod
    def now(cls) -> Self:
        """The present settings."""
        settings = {name: _Settings.of(logger) for name, logger in _loggers().items()}
        return cls(_Settings.of(logging.root), settings, logging.root.manager.disable)

    def restore(self, modules: Collection[str]) -> None:
        """Restore all settings.

        Args:
            modules: Those that were loaded then. What libraries that were loaded since have set for themselves is left.
        """
        self.root.restore(logging.root)
        logging.disable(self.disabled)
        for name, logger in _loggers().items():
            if name in self.loggers:
                self.loggers[name].restore(logger)
            elif name.partition(".")[0] in modules or not is_third_party(name.partition(".")[0]):
                _Settings().restore(logger)


def _loggers() -> dict[str, logging.Logger]:
    known = logging.root.manager.loggerDict
    return {name: logger for name, logger in list(known.items()) if isinstance(logger, logging.Logger)}
