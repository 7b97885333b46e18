"""Finding the data files at a path or URI, and their format by name."""

from __future__ import annotations

import os
from typing import Any, Literal

from trainlib.errors import DataError, DataNotFoundError

Format = Literal["csv", "parquet", "json"]

_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
_KINDS = "CSV (.csv), Parquet (.parquet) or JSON Lines (.jsonl) files, compressed or not (.gz, .bz2, .zst, .lz4)"


def format_of(path: str) -> Format:
    """The format of a file, by its name.

    Example:
        >>> format_of("s3://bucket/a.csv.gz"), format_of("b.PARQUET")
        ('csv', 'parquet')
    """
    stem, suffix = os.path.splitext(name_in(path).lower())
    if suffix in COMPRESSIONS:
        suffix = os.path.splitext(stem)[1]
    if suffix not in _FORMATS:
        raise DataError(f"cannot tell the format of {path} from its name. Supported are {_KINDS}")
    return _FORMATS[suffix]


def name_in(path: str) -> str:
    """The path without the query of an http URL."""
    return path.partition("?")[0] if path.startswith(("http://", "https://")) else path


def filesystem_of(uri: str) -> tuple[Any, str]:
    """The fsspec file system of a URI, and the path in it."""
    import fsspec

    try:
        filesystem, path = fsspec.core.url_to_fs(uri)
    except ImportError as error:
        raise DataError(f"cannot reach {uri}: {error}") from error
    except ValueError as error:
        raise DataError(
            f"cannot reach {uri}: {error}. Use a scheme that fsspec knows, e.g. s3://, gs:// or https://"
        ) from error
    if "memory" in (filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,)):
        raise DataError(f"{uri} is in the memory of this process, and workers cannot read it. Pass a DataFrame instead")
    return filesystem, path


def find(uri: str) -> tuple[Any, list[str]]:
    """The file system, and the data files at a URI, sorted."""
    filesystem, path = filesystem_of(uri)
    filesystem.invalidate_cache()
    try:
        if filesystem.isfile(path):
            return filesystem, [path]
        if any(sign in path for sign in "*?["):
            found = sorted(each for each in filesystem.glob(path) if not filesystem.isdir(each))
            if not found:
                raise DataNotFoundError(f"no file matches {uri}. Check the pattern, and that the files exist")
            return filesystem, found
        if filesystem.isdir(path):
            return filesystem, _in_folder(filesystem, path, uri)
    except OSError as error:
        raise DataNotFoundError(f"cannot list {uri}: {error}") from error
    raise DataNotFoundError(f"there is no data at {uri}. Pass the path or URI of {_KINDS}, or of a folder of them")


def _in_folder(filesystem: Any, folder: str, uri: str) -> list[str]:
    every = sorted(filesystem.find(folder))
    visible = [path for path in every if not _is_hidden(path[len(folder) :])]
    data = [path for path in visible if _is_data(path)]
    if not data:
        names = ", ".join(path.rsplit("/", 1)[-1] for path in visible[:5])
        raise DataNotFoundError(
            f"the folder {uri} has no data files ({f'it has {names}' if names else 'it is empty'}). Supported are {_KINDS}"
        )
    return data


def _is_hidden(below: str) -> bool:
    """Whether this is a marker that other tools leave beside data, such as ``_SUCCESS`` or ``.crc``."""
    return any(part.startswith(("_", ".")) for part in below.strip("/").split("/"))


def _is_data(path: str) -> bool:
    try:
        format_of(path)
    except DataError:
        return False
    return True
