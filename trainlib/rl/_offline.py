"""Offline data: a dataset as Parquet files, because RLlib takes paths only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard

__all__ = ["write_parquet"]

_ROWS = 4096


def write_parquet(shard: DatasetShard, folder: Path) -> str:
    """Write a dataset below a folder of this node. Gives the path for RLlib.

    With ``local://``, Ray reads the files on this node, whose disk they are on, and sends the rows to whoever learns from them on others.
    """
    import pyarrow.parquet as pq

    target = folder / "offline"
    target.mkdir()
    for number, table in enumerate(shard.iter_batches(batch_size=_ROWS, batch_format="pyarrow")):
        pq.write_table(table, target / f"{number:06d}.parquet")
    return f"local://{target}"
