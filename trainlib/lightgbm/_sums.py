"""Sums of numbers over the ranks of a gang. LightGBM measures on each rank's own rows, and has no sum to offer."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from trainlib._boosting.exchange import ExchangeBytes, exchange

__all__ = ["add_up"]


def add_up(numbers: Sequence[float], by: ExchangeBytes = exchange) -> list[float]:
    """The sums of these numbers over all ranks, which have to call this equally often. All ranks get the same ones, to the last bit.

    Raises:
        ConnectionError: another rank has gone away.
        TimeoutError: another rank does not come.
    """
    packing = struct.Struct(f"{len(numbers)}d")
    everyones = [packing.unpack(each) for each in by(packing.pack(*numbers))]
    return [sum(each) for each in zip(*everyones, strict=True)]
