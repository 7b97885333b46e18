"""A folder as bytes, and back: an uncompressed tar archive, in which no code is."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path

from trainlib.errors import InvalidArgumentError

__all__ = ["pack", "pack_files", "read_files", "read_names", "require_packed", "unpack"]


def pack(folder: Path) -> bytes:
    """The files of a folder, with their paths below it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False)
    return buffer.getvalue()


def pack_files(files: Mapping[str, bytes]) -> bytes:
    """Files that are in no folder yet.

    Example:
        >>> read_files(pack_files({"notes.txt": b"hello"}))
        {'notes.txt': b'hello'}
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Write the files into a folder, and nowhere else: paths and links that lead out of it are an error."""
    folder.mkdir(parents=True, exist_ok=True)
    with _opened(packed) as archive:
        archive.extractall(folder, filter="data")


def read_files(packed: bytes, names: Collection[str] = ()) -> dict[str, bytes]:
    """The contents of the files with these paths, as far as they exist. Without any, of all files."""
    with _opened(packed) as archive:
        wanted = [entry for entry in archive if entry.isfile() and (entry.name in names or not names)]
        return {entry.name: archive.extractfile(entry).read() for entry in wanted}  # type: ignore[union-attr]


def read_names(packed: bytes) -> list[str]:
    """The paths of the files.

    Example:
        >>> read_names(pack_files({"notes.txt": b"hello"}))
        ['notes.txt']
    """
    with _opened(packed) as archive:
        return [entry.name for entry in archive if entry.isfile()]


def require_packed(data: object) -> bytes:
    """Returns the bytes, or raises an error if they are no packed folder."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidArgumentError(f"Checkpoint.from_bytes() takes bytes, got {type(data).__name__}")
    packed = bytes(data)
    try:
        with _opened(packed):
            return packed
    except tarfile.ReadError:
        raise InvalidArgumentError(
            f"Checkpoint.from_bytes() takes what to_bytes() gave. These {len(packed)} bytes are something else"
        ) from None


def _opened(packed: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(packed), mode="r:")
