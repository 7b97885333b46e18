"""Sums of numbers over the ranks of a gang. LightGBM measures on each rank's own rows, and has no sum to offer."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from trainlib.lightgbm import _desk as desk

__all__ = ["add_up"]


def add_up(numbers: Sequence[float]) -> list[float]:
    """The sums of these numbers over all ranks, which have to call this equally often. All ranks get the same ones, to the last bit.

    Raises:
        ConnectionError: another rank has gone away.
        TimeoutError: another rank does not come.
    """
    packing = struct.Struct(f"{len(numbers)}d")
    everyones = [packing.unpack(each) for each in desk.exchange(packing.pack(*numbers))]
    return [sum(each) for each in zip(*everyones, strict=True)]
