"""Prefect's server: whether it answers, and waiting until it does."""

from __future__ import annotations

import logging
import time
import urllib.request

from prefect.settings import PREFECT_API_URL

from trainlib._execution.waiting import raise_if_cancelled

__all__ = ["answers", "wait_before_retry", "wait_until_it_answers"]

# How long a retry that is due waits for a server that does not answer.
RETRY_WAIT_S = 60.0

_ANSWER_S = 2.0
_LOOK_S = 0.2

_log = logging.getLogger("trainlib")


def answers(url: str) -> bool:
    """Whether a Prefect server answers at an API address."""
    try:
        urllib.request.urlopen(f"{url}/health", timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True


def wait_until_it_answers(seconds: float) -> bool:
    """Wait for the server of this process, for at most so many seconds. Returns whether it answers."""
    url = PREFECT_API_URL.value()
    deadline = time.monotonic() + seconds
    while url is not None and not answers(url):
        raise_if_cancelled()
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def wait_before_retry() -> None:
    """Wait a while for a server that does not answer: it is not told of the retry later. The retry is made in any case."""
    if wait_until_it_answers(0.0):
        return
    _log.warning(
        "A retry is due, but the Prefect server does not answer. Waiting for it, for up to %g s.", RETRY_WAIT_S
    )
    if not wait_until_it_answers(RETRY_WAIT_S):
        _log.warning("The Prefect server still does not answer. The training goes on without it.")
