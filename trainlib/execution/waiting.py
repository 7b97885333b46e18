"""Waiting for Ray in a way that a signal can interrupt.

A signal that arrives inside ``ray.get`` comes out as an ordinary error, so that Prefect would retry a
cancelled training. Waiting on a Python future lets Ctrl-C and SIGTERM through as what they are.
"""

from __future__ import annotations

import concurrent.futures
import time
from collections.abc import Sequence
from typing import Any


def gather(refs: Sequence[Any], timeout: float | None = None) -> list[Any]:
    """The values of all refs, in order. Raises the first error that arrives, or TimeoutError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    futures = [ref.future() for ref in refs]
    done, pending = concurrent.futures.wait(
        futures,
        timeout=None if deadline is None else max(0.0, deadline - time.monotonic()),
        return_when=concurrent.futures.FIRST_EXCEPTION,
    )
    for future in futures:
        if future in done:
            future.result()  # raises what it failed with
    if pending:
        raise TimeoutError(f"{len(pending)} of {len(futures)} workers did not answer in {timeout:g} s")
    return [future.result() for future in futures]
