"""Keeping a service up: one that ends by itself or hangs is restarted, for as long as that helps.

Nothing here waits, so that a service that is slow to start keeps nobody from looking after the others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from trainlib._platform.running_service import RunningService, answers
from trainlib.errors import PlatformError

__all__ = ["START_S", "WatchedService", "pause_before_restart"]

START_S = 180.0

# How long a service that has ended is left alone before its first, second and third restart.
PAUSES_S = (0.0, 5.0, 20.0)
# Restarts longer ago than this are forgotten.
MEMORY_S = 600.0
# A server that has not answered for so long hangs. One that is merely busy answers now and then.
HANGS_S = 60.0
_ASK_EVERY_S = 5.0

_log = logging.getLogger("trainlib")


def pause_before_restart(ends: Sequence[float], now: float) -> float | None:
    """How long to wait before a service is restarted that has ended at such times. None if it is given up.

    Example:
        >>> pause_before_restart([10.0], 10.0), pause_before_restart([10.0, 12.0, 20.0, 50.0], 50.0)
        (0.0, None)
    """
    recent = sum(now - end < MEMORY_S for end in ends)
    return PAUSES_S[recent - 1] if recent <= len(PAUSES_S) else None


class WatchedService:
    """A service that was up, and is to stay so."""

    def __init__(self, running: RunningService, now: float) -> None:
        self.running = running
        self._ends: list[float] = []
        self._restart_at: float | None = None
        self._up_before: float | None = None
        """When a service that was restarted has to be up; None while it is."""
        self._asked_at = self._answered_at = now

    def look(self, now: float) -> str | None:
        """Do what is due. Gives the service's address when it is up again after a restart.

        Raises:
            PlatformError: it is given up, or does not start.
        """
        if self._restart_at is not None:
            if now >= self._restart_at:
                self._restart(now)
        elif self.running.has_ended:
            self._plan_restart(now)
        elif self._up_before is not None:
            return self._wait_until_up(now)
        elif self._hangs(now):
            _log.warning(
                "%s has not answered for %g s, and is ended. Its log is %s",
                self._name,
                HANGS_S,
                self.running.service.log,
            )
            self.running.tell_to_end()  # its end is seen, and it is restarted, like one that ends by itself
            self._answered_at = now
        return None

    @property
    def _name(self) -> str:
        return self.running.service.name

    def _plan_restart(self, now: float) -> None:
        self._ends.append(now)
        pause_s = pause_before_restart(self._ends, now)
        if pause_s is None:
            raise PlatformError(
                f"{self._name} has ended by itself {len(PAUSES_S) + 1} times within {MEMORY_S / 60:g} minutes, so the "
                f"platform has ended. {self.running.complaint()}"
            )
        _log.warning("%s has ended by itself, and is restarted. Its log is %s", self._name, self.running.service.log)
        self._restart_at = now + pause_s

    def _restart(self, now: float) -> None:
        self.running = RunningService(self.running.service)
        self._restart_at, self._up_before = None, now + START_S

    def _wait_until_up(self, now: float) -> str | None:
        assert self._up_before is not None
        try:
            address = self.running.address()
        except PlatformError:
            if self.running.has_ended:  # just now
                return None
            raise
        if address is not None:
            self._up_before, self._asked_at, self._answered_at = None, now, now
        elif now > self._up_before:
            raise PlatformError(f"{self._name} did not start within {START_S:g} s. {self.running.complaint()}")
        return address

    def _hangs(self, now: float) -> bool:
        health = self.running.service.health
        if not health or now - self._asked_at < _ASK_EVERY_S:
            return False
        self._asked_at = now
        if answers(health):
            self._answered_at = now
        return now - self._answered_at > HANGS_S
