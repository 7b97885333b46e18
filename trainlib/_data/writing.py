"""Writes a Ray Dataset as Parquet files whose names are the same every time, with the rows in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyarrow import parquet
from ray.data import SaveMode
from ray.data.datasource import BlockBasedFileDatasink, FilenameProvider

from trainlib import _storage as storage

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data
    from ray.data.block import BlockAccessor


class _Numbered(FilenameProvider):
    """Numbered file names. Ray's own have a random part, so that equal data would never give equal files."""

    def get_filename_for_task(self, write_uuid: str, task_index: int) -> str:
        return f"part-{task_index:06}.parquet"


class _InOrder(BlockBasedFileDatasink):
    """Writes the rows of a file one after the other. Ray's own ``write_parquet`` leaves their order to several threads."""

    def write_block_to_file(self, block: BlockAccessor, file: pa.NativeFile) -> None:
        parquet.write_table(block.to_arrow(), file)


def write_parquet(dataset: ray.data.Dataset, folder: str) -> None:
    """Write all rows into a new folder."""
    path = storage.local_path(folder)
    filesystem, inner = (None, str(path)) if path is not None else storage.filesystem(folder)
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
    names = _Numbered(file_format="parquet")
    dataset.write_datasink(_InOrder(inner, filesystem=filesystem, filename_provider=names, mode=SaveMode.OVERWRITE))
