"""Two ranks that exchange bytes, without Ray."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from trainlib._boosting.exchange import Exchange, ExchangeBytes

__all__ = ["alone", "by_two_ranks", "connected"]


def alone(mine: bytes) -> list[bytes]:
    """What a rank without others gets."""
    return [mine]


def connected(timeout_s: float = 20) -> tuple[Exchange, Exchange]:
    """Two ranks that have found each other."""
    ends = Exchange(), Exchange()
    port = ends[0].open("127.0.0.1", timeout_s)
    ends[1].join("127.0.0.1", port, "token", timeout_s)
    ends[0].let_in(1, "token", timeout_s)
    return ends


def by_two_ranks(work: Callable[[int, ExchangeBytes], Any]) -> list[Any]:
    """What two ranks return, which are threads that exchange bytes."""
    ends = connected()
    try:
        with ThreadPoolExecutor(2) as threads:
            ranks = [
                threads.submit(work, rank, lambda mine, rank=rank: ends[rank].send_and_receive(rank, mine))
                for rank in (0, 1)
            ]
            return [each.result(60) for each in ranks]
    finally:
        for each in ends:
            each.leave()
