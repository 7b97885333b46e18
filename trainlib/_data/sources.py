"""Data files at a path or URI: one file, a glob or a folder of CSV, Parquet or JSON Lines, compressed or not.

They are inspected before anything is started: they must exist, be readable, and have the same columns. An error names
the file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib._data.files import COMPRESSIONS, Format, filesystem_of, find, format_of, name_in
from trainlib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data

__all__ = ["Source", "inspect_source"]

# Text files up to this total size are inspected from end to end, which takes a second or two.
READ_WHOLE = 256 * 1024**2
# Files up to this total size are hashed; larger ones count as changed when name, size or modification time differ.
HASH_WHOLE = 1024**3
_THREADS = 16
# The fields by which stores tell that a file has changed.
_VERSIONS = (
    "ETag",
    "etag",
    "md5Hash",
    "content_md5",
    "generation",
    "LastModified",
    "last_modified",
    "updated",
    "mtime",
)


@dataclass(frozen=True)
class Source:
    """Files that have been inspected, and can be read.

    Example:
        >>> import pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "points.csv").write_text("x,y\\n1,2\\n3,4\\n")
        >>> source = inspect_source(str(folder))
        >>> source.format, source.rows, dict(source.columns)
        ('csv', 2, {'x': 'int64', 'y': 'int64'})
    """

    uri: str
    format: Format
    paths: tuple[str, ...]
    """The paths within their file system."""
    size: int
    """The total size of the files, in bytes."""
    schema: pa.Schema = field(repr=False)
    rows: int | None
    """How many rows there are. None if counting them would take long."""

    @property
    def columns(self) -> dict[str, str]:
        """Names and types of the columns."""
        return {each.name: str(each.type) for each in self.schema}

    @property
    def is_local(self) -> bool:
        """Whether the files are on local disk."""
        return storage.local_path(self.uri) is not None

    def digest(self) -> str:
        """A hash that differs when the contents of any file may have changed since they were inspected."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        filesystem, _ = filesystem_of(self.uri)
        mark = _hash if self.is_local and self.size <= HASH_WHOLE else _version
        with ThreadPoolExecutor(_THREADS) as threads:
            marks = list(threads.map(lambda path: mark(filesystem, path), self.paths))
        names = [path.rsplit("/", 1)[-1] for path in self.paths]
        return hashlib.sha256(repr(list(zip(names, marks, strict=True))).encode()).hexdigest()[:16]

    def read(self) -> ray.data.Dataset:
        """The files as a Ray Dataset. Nothing is read yet."""
        import ray.data

        where: dict[str, Any] = {} if self.is_local else {"filesystem": filesystem_of(self.uri)[0]}
        # Folders named like `year=2024` add no column: the columns are those that were inspected in the files.
        common: dict[str, Any] = {**where, "file_extensions": None, "partitioning": None}
        paths = list(self.paths)
        if self.format == "parquet":
            from ray.data._internal.datasource.parquet_datasource import ParquetDatasource

            # `ray.data.read_parquet` starts up to 32 processes whenever a dataset is read, only to look how many rows its files have.
            return ray.data.read_datasource(ParquetDatasource(paths, **common))
        from pyarrow import csv, json

        if self.format == "json":
            # Not with `lines=True`: it turns text that looks like a number into one, and reads only local files.
            return ray.data.read_json(paths, parse_options=json.ParseOptions(explicit_schema=self.schema), **common)
        types = csv.ConvertOptions(column_types=self.schema)
        return ray.data.read_csv(paths, convert_options=types, **common)


def inspect_source(uri: str | os.PathLike[str], *, whole: bool = False) -> Source:
    """Find the files, and check that they can be read and have the same columns.

    Text files are read from end to end if they are small, or if ``whole`` is set.

    Raises:
        DataNotFoundError: there are no data files.
        DataError: a file is empty or broken, or its columns differ from the first file's.
    """
    uri = storage.absolute(os.fspath(uri))
    filesystem, paths = find(uri)
    formats = {path: format_of(path) for path in paths}
    if len(set(formats.values())) > 1:
        one, other = (
            next(path for path in paths if formats[path] == kind) for kind in sorted(set(formats.values()))[:2]
        )
        raise DataError(
            f"{uri} has files of different formats, e.g. {one} and {other}. Select one format, e.g. with *.csv"
        )
    format = formats[paths[0]]
    with ThreadPoolExecutor(_THREADS) as threads:
        sizes = list(threads.map(filesystem.size, paths))
    size = sum(each or 0 for each in sizes)
    for path, each in zip(paths, sizes, strict=True):
        if each == 0:
            raise DataError(f"{path} is an empty file, without even a header. Remove it, or write it again")
    whole = whole or size <= READ_WHOLE
    inspect = _inspect_if_changed if storage.local_path(uri) is not None else _inspect_file
    with ThreadPoolExecutor(_THREADS) as threads:
        infos = list(threads.map(lambda path: inspect(filesystem, path, format, whole), paths))
    schema = infos[0].schema
    for path, found in zip(paths[1:], infos[1:], strict=True):
        schema = _merge_schemas(schema, found.schema, paths[0], path, format)
    rows = [found.rows for found in infos]
    known = None if any(each is None for each in rows) else sum(each or 0 for each in rows)
    if known == 0:
        raise DataError(f"{uri} has columns but no rows. Check what wrote {'these files' if len(paths) > 1 else 'it'}")
    return Source(uri, format, tuple(paths), size, schema, known)


# -- inspecting -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _FileInfo:
    schema: pa.Schema
    rows: int | None


def _inspect_file(filesystem: Any, path: str, format: Format, whole: bool) -> _FileInfo:
    return (_inspect_parquet if format == "parquet" else _inspect_text)(filesystem, path, format, whole)


def _inspect_if_changed(filesystem: Any, path: str, format: Format, whole: bool) -> _FileInfo:
    """Inspect a local file, unless it has not changed since the last time, e.g. in the next trial of a sweep."""
    status = os.stat(path)
    return _inspect_cached(filesystem, path, format, whole, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _inspect_cached(filesystem: Any, path: str, format: Format, whole: bool, size: int, changed: int) -> _FileInfo:
    return _inspect_file(filesystem, path, format, whole)


def _inspect_parquet(filesystem: Any, path: str, format: Format, whole: bool) -> _FileInfo:
    """Read the footer, which has the schema and the number of rows. A truncated file has no footer."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with filesystem.open(path, "rb") as file:
            found = parquet.ParquetFile(file)
            return _FileInfo(found.schema_arrow.remove_metadata(), found.metadata.num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{path} is not a complete Parquet file ({_first_line(error)}). It may be truncated: write it again"
        ) from error


def _inspect_text(filesystem: Any, path: str, format: Format, whole: bool) -> _FileInfo:
    """Read the first block, or the whole file."""
    import pyarrow as pa

    try:
        with _opened(filesystem, path) as stream:
            if format == "csv":
                return _inspect_csv(stream, whole)
            return _inspect_json(stream, whole)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        hint = "" if format == "csv" else ". JSON Lines has one object per line, and no list around them"
        raise DataError(
            f"{path} cannot be read: {_first_line(error)}. Correct the file, or leave it out{hint}"
        ) from error


def _inspect_csv(stream: Any, whole: bool) -> _FileInfo:
    from pyarrow import csv

    options = csv.ReadOptions(use_threads=False)  # without threads, errors name the row
    if whole:  # so that all values decide about the type of a column, not only the first block
        table = csv.read_csv(stream, read_options=options)
        return _FileInfo(table.schema, table.num_rows)
    return _FileInfo(csv.open_csv(stream, read_options=options).schema, None)


def _inspect_json(stream: Any, whole: bool) -> _FileInfo:
    from pyarrow import json

    if whole:
        table = json.read_json(stream)
        return _FileInfo(table.schema, table.num_rows)
    return _FileInfo(json.open_json(stream).schema, None)


@contextmanager
def _opened(filesystem: Any, path: str) -> Iterator[Any]:
    import pyarrow as pa

    compression = COMPRESSIONS.get(os.path.splitext(name_in(path).lower())[1])
    with filesystem.open(path, "rb") as file:
        if compression is None:
            yield file
        else:
            with pa.CompressedInputStream(file, compression) as stream:
                yield stream


def _merge_schemas(first: pa.Schema, other: pa.Schema, first_path: str, path: str, format: Format) -> pa.Schema:
    """One schema for two files, or an error that names the difference."""
    import pyarrow as pa

    def differ(what: str) -> DataError:
        return DataError(
            f"the columns of {path} differ from those of {first_path}: {what}. Files that are read together need the same columns"
        )

    if missing := [name for name in first.names if name not in other.names]:
        raise differ(f"it lacks {_quoted(missing)}")
    if more := [name for name in other.names if name not in first.names]:
        raise differ(f"it also has {_quoted(more)}")
    if format == "csv" and first.names != other.names:
        raise differ(f"their order is {', '.join(other.names)} instead of {', '.join(first.names)}")
    columns = []
    for name in first.names:
        one, two = first.field(name).type, other.field(name).type
        try:
            columns.append(
                pa.unify_schemas(
                    [pa.schema([(name, one)]), pa.schema([(name, two)])], promote_options="permissive"
                ).field(0)
            )
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            raise differ(f"{name!r} is {two} instead of {one}") from None
    return pa.schema(columns)


def _quoted(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


# -- has it changed? -----------------------------------------------------------------------------------


def _hash(filesystem: Any, path: str) -> str:
    status = os.stat(path)
    return _hash_once(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _hash_once(path: str, size: int, changed: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(filesystem: Any, path: str) -> str:
    """The version of a file as its store tells it, else a hash of its bytes."""
    about = filesystem.info(path)
    version = {key: str(about[key]) for key in _VERSIONS if about.get(key)}
    if version:
        return repr((about.get("size"), version))
    with filesystem.open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
