"""Prefect's server: whether it answers, and waiting until it does."""

from __future__ import annotations

import time
import urllib.request

from prefect.settings import PREFECT_API_URL

from trainlib._execution.waiting import raise_if_cancelled

__all__ = ["answers", "wait_until_it_answers"]

_ANSWER_S = 2.0
_LOOK_S = 0.2


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
