"""Patience with MLflow: what to do while it is away. The only place that waits for it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from trainlib._retry_lines import without_retry_lines
from trainlib._secrets import masked_uri
from trainlib.errors import ConnectionFailedError

__all__ = ["Patience", "is_away"]

RETRY_S = 2.0
# Once the limit has passed, MLflow is not asked again for so long: each of many calls would take its time to fail.
REST_S = 30.0
# A call that takes longer is not waiting its turn: MLflow hangs.
HANGS_S = 10.0

P = ParamSpec("P")
R = TypeVar("R")

_AWAY = (
    "INTERNAL_ERROR",  # also what MLflow's client raises when it cannot connect
    "TEMPORARILY_UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "REQUEST_LIMIT_EXCEEDED",
    "RESOURCE_EXHAUSTED",
)


def is_away(error: BaseException) -> bool:
    """Whether an error means that MLflow cannot be reached now. A refusal would be repeated, so it is none of these.

    Example:
        >>> is_away(ConnectionRefusedError("nobody listens")), is_away(ValueError("no such run"))
        (True, False)
    """
    from mlflow.exceptions import InvalidUrlException, MlflowException

    if isinstance(error, MlflowException):
        if isinstance(error, InvalidUrlException) or error.error_code not in _AWAY:
            return False
        # A database's own errors are passed on as internal ones, whatever they are.
        return error.error_code != "INTERNAL_ERROR" or error.__cause__ is None or is_away(error.__cause__)
    from requests.exceptions import ConnectionError as NotConnected
    from requests.exceptions import HTTPError, Timeout
    from sqlalchemy.exc import OperationalError

    if isinstance(error, HTTPError) and error.response is not None:
        return error.response.status_code == 429 or error.response.status_code >= 500
    return isinstance(
        error, (ConnectionError, TimeoutError, NotConnected, Timeout, OperationalError, sqlite3.OperationalError)
    )


class Patience:
    """Calls MLflow, and calls again for a while if it is away.

    All that a training says to MLflow shares one patience, in any number of threads. So the limit counts from when
    MLflow was first found away, whoever found it. After the limit, calls fail at once, except for one now and then.

    It shows nothing: :meth:`remarks` has what a person should know.
    """

    def __init__(self, limit_s: float, address: str) -> None:
        """
        Args:
            limit_s: How long MLflow may be away.
            address: Where it is, for people.
        """
        self._limit_s = limit_s
        self._address = masked_uri(address)
        self._changed = threading.Condition()
        self._away_since: float | None = None
        self._counts_from = 0.0
        """When the limit began to count: when MLflow was found away, or when another attempt began."""
        self._failed_at = 0.0
        self._reason = ""
        self._deadline: float | None = None
        self._calls: dict[int, float] = {}
        self._remarks: list[str] = []
        self.was_away = False
        """Whether MLflow has ever been away. It may then have done what it could not confirm."""

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function that talks to MLflow. Waits while MLflow is away.

        Raises:
            ConnectionFailedError: MLflow was away for too long.
            Exception: whatever else the function raises.
        """
        return self._insist(self.once, function, *args, **kwargs)

    def unwatched(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for a call that may take long, such as an upload: that does not mean that MLflow hangs."""
        return self._insist(self._once, function, *args, **kwargs)

    def _insist(self, call: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        while True:
            if self.is_over and time.monotonic() - self._failed_at < REST_S:
                raise ConnectionFailedError(self.complaint())
            try:
                return call(*args, **kwargs)
            except Exception as error:
                if not is_away(error):
                    raise
                if self.is_over:
                    raise ConnectionFailedError(self.complaint()) from error
            self.pause()

    def once(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it once, and keep in mind whether MLflow answered."""
        caller = threading.get_ident()
        with self._changed:
            self._calls[caller] = time.monotonic()
        try:
            return self._once(function, *args, **kwargs)
        finally:
            with self._changed:
                del self._calls[caller]

    def _once(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        started = time.monotonic()
        try:
            with without_retry_lines():  # one remark says that MLflow is away
                result = function(*args, **kwargs)
        except Exception as error:
            self._ended(error, started)
            raise
        self._ended(None, started)
        return result

    @property
    def is_waiting(self) -> bool:
        """Whether MLflow is away."""
        return self._away_since is not None

    @property
    def is_over(self) -> bool:
        """Whether MLflow has been away for longer than the limit."""
        with self._changed:
            if self._away_since is None:
                return False
            now = time.monotonic()
            return now - self._counts_from >= self._limit_s or (self._deadline is not None and now >= self._deadline)

    def failed_since(self, moment: float) -> bool:
        """Whether MLflow was tried in vain since then, or is not to be waited for any more."""
        with self._changed:
            hurried = self._deadline is not None and time.monotonic() >= self._deadline
            return hurried or self._failed_at >= moment

    def complaint(self) -> str:
        """What is wrong, for an error."""
        since = self._away_since
        seconds = f" for {time.monotonic() - since:.0f} s" if since is not None else ""
        return (
            f"MLflow at {self._address} has not answered{seconds} ({self._reason}). Start it again, or give it more time: "
            f"FailureConfig(mlflow_timeout_min=...) is {self._limit_s / 60:g}."
        )

    def pause(self) -> None:
        """Wait a moment before the next try."""
        with self._changed:
            if self._away_since is not None:
                self._changed.wait(RETRY_S)

    def renew(self) -> None:
        """Begin to wait anew: another attempt has been granted."""
        with self._changed:
            self._deadline = None
            self._counts_from = time.monotonic()

    def hurry(self, seconds: float) -> None:
        """Wait no longer than this from the first call on, because somebody has ended the training."""
        with self._changed:
            self._deadline = self._deadline or time.monotonic() + seconds
            self._changed.notify_all()

    def remarks(self) -> list[str]:
        """What a person should know since the last call: MLflow is waited for, or answers again."""
        with self._changed:
            now = time.monotonic()
            if self._away_since is None and (oldest := min(self._calls.values(), default=now)) < now - HANGS_S:
                self._begins(oldest, f"it hangs: no answer within {HANGS_S:g} s")
            remarks, self._remarks = self._remarks, []
            return remarks

    def _ended(self, error: Exception | None, started: float) -> None:
        with self._changed:
            if error is not None and is_away(error):
                self._failed_at = time.monotonic()
                if self._away_since is None:
                    self._begins(started, short(error))
                return
            if self._away_since is not None:
                self._remarks.append(f"MLflow answers again, after {time.monotonic() - self._away_since:.0f} s")
                self._away_since = None
                self._changed.notify_all()

    def _begins(self, since: float, reason: str) -> None:
        """MLflow is away. Called with the lock held."""
        self._away_since = self._counts_from = since
        self._reason = reason
        self.was_away = True
        self._remarks.append(
            f"MLflow at {self._address} does not answer ({reason}). Waiting for it, for up to {self._limit_s / 60:g} min; "
            "metrics and checkpoints are kept meanwhile"
        )


def short(error: BaseException) -> str:
    """The gist of an error of MLflow's client, on one line."""
    text = str(error)
    for sign, gist in (
        ("Connection refused", "connection refused"),
        ("timed out", "timed out"),
        ("database is locked", "its database is locked"),
    ):
        if sign in text:
            return gist
    line = text.splitlines()[0] if text else repr(error)
    return line if len(line) <= 200 else f"{line[:200]}..."
