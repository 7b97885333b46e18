"""Writes a Ray Dataset as Parquet files whose names are the same every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray.data import SaveMode
from ray.data.datasource import FilenameProvider

from trainlib import _storage as storage

if TYPE_CHECKING:
    import ray.data


class _Numbered(FilenameProvider):
    """Numbered file names. Ray's own have a random part, so that equal data would never give equal files."""

    def get_filename_for_task(self, write_uuid: str, task_index: int) -> str:
        return f"part-{task_index:06}.parquet"


def write_parquet(dataset: ray.data.Dataset, folder: str) -> None:
    """Write all rows into a new folder."""
    path = storage.local_path(folder)
    names = _Numbered(file_format="parquet")
    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        dataset.write_parquet(str(path), filename_provider=names, mode=SaveMode.OVERWRITE)
    else:
        filesystem, inner = storage.filesystem(folder)
        dataset.write_parquet(inner, filesystem=filesystem, filename_provider=names, mode=SaveMode.OVERWRITE)
