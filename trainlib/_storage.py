"""Folders at a path or a URI: on local disk, in any fsspec store, or behind an MLflow server.

This module moves whole directories, and does not know what is in them.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

from trainlib._progress_bars import without_progress_bars
from trainlib._retry_lines import without_retry_lines
from trainlib._secrets import masked_uri

# Only MLflow's own client can reach these, through the tracking server.
_THROUGH_MLFLOW = ("mlflow-artifacts", "runs", "models", "dbfs")
# What writing to a disk without room for it gives: no space, no quota, or a file above the limit of the process.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What a tracking server's own addresses of artifacts have in them.
_SERVED_BY_MLFLOW = "/api/2.0/mlflow-artifacts/artifacts/"


def home() -> Path:
    """The folder for everything that has no other location: ``$TRAINLIB_HOME`` or ``~/trainlib``."""
    return Path(os.environ.get("TRAINLIB_HOME") or "~/trainlib").expanduser().absolute()


def join(uri: str, *parts: str) -> str:
    """The URI of a path below ``uri``."""
    return "/".join([uri.rstrip("/"), *parts])


def absolute(location: str) -> str:
    """An absolute path, because workers may run in another directory. A URI stays as it is.

    A URI without a host keeps its three slashes, which URL libraries like to drop.

    Example:
        >>> absolute("hdfs:/runs")
        'hdfs:///runs'
    """
    path = local_path(location)
    if path is not None:
        return str(path)
    if is_through_mlflow(location):
        return location
    scheme, colon, rest = location.partition(":")
    return location if rest.startswith("//") or not rest.startswith("/") else f"{scheme}{colon}//{rest}"


def local_path(location: str) -> Path | None:
    """The local path that a path or ``file:`` URI names; None for any other store."""
    parsed = urlparse(location)
    if parsed.scheme == "file":
        return Path(unquote(parsed.path))
    if len(parsed.scheme) > 1:
        return None
    return Path(location).expanduser().absolute()


def is_own(path: Path) -> bool:
    """Whether a local file or folder belongs to this user. Code in what belongs to others must not run unasked."""
    return path.stat().st_uid == os.getuid()


def is_through_mlflow(location: str) -> bool:
    """Whether only MLflow's own client can reach a location, through the tracking server."""
    parsed = urlparse(location)
    return parsed.scheme in _THROUGH_MLFLOW or (parsed.scheme in ("http", "https") and _SERVED_BY_MLFLOW in parsed.path)


def exists(location: str) -> bool:
    """Whether a file or folder exists there."""
    if (path := local_path(location)) is not None:
        return path.exists()
    if is_through_mlflow(location):
        return bool(_artifacts(location).list_artifacts())
    store, inner = filesystem(location)
    return bool(store.exists(inner))


def names_in(location: str) -> set[str]:
    """The names of the files and folders in a folder. Empty if there is no such folder."""
    if (path := local_path(location)) is not None:
        return {each.name for each in path.iterdir()} if path.is_dir() else set()
    if is_through_mlflow(location):
        return {each.path.rsplit("/", 1)[-1] for each in _artifacts(location).list_artifacts()}
    store, inner = filesystem(location)
    found = store.ls(inner, detail=False) if store.exists(inner) else []
    return {str(each).rstrip("/").rsplit("/", 1)[-1] for each in found}


def size_of(location: str) -> int:
    """How many bytes the files in a folder have. 0 if there is no such folder."""
    if (path := local_path(location)) is not None:
        return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file() and not each.is_symlink())
    if is_through_mlflow(location):
        return _size_of_artifacts(_artifacts(location), None)
    store, inner = filesystem(location)
    return int(store.du(inner)) if store.exists(inner) else 0


def _size_of_artifacts(artifacts, folder: str | None) -> int:  # type: ignore[no-untyped-def]
    found = artifacts.list_artifacts(folder)
    return sum(_size_of_artifacts(artifacts, each.path) if each.is_dir else each.file_size or 0 for each in found)


def lacks_room(error: BaseException) -> bool:
    """Whether an error means that a disk is full.

    Example:
        >>> lacks_room(OSError(errno.ENOSPC, "No space left on device")), lacks_room(FileNotFoundError("no such file"))
        (True, False)
    """
    if isinstance(error, shutil.Error):  # it has the errors of all files that could not be copied, as texts
        return any(os.strerror(number) in str(error) for number in _NO_ROOM)
    return isinstance(error, OSError) and error.errno in _NO_ROOM


def has_files(folder: Path) -> bool:
    """Whether there is a file in a folder, or in one below it."""
    return any(names for _, _, names in os.walk(folder))


def upload(source: Path, location: str) -> None:
    """Move the folder ``source`` to ``location``, by a rename if possible, else by a copy.

    On local disk the folder appears under its final name only when it is complete, and both are safe from a power loss:
    the files and folders are synced to the disk before the rename, and the folder around them after it.
    """
    if (target := local_path(location)) is not None:
        new = _make_folders(target.parent)
        _move(source, target)
        for folder in (target.parent, *new):
            _sync(folder)
        return
    if is_through_mlflow(location):
        with without_retry_lines():
            _artifacts(location).log_artifacts(str(source))
    else:
        store, inner = filesystem(location)
        for root, _, names in os.walk(source):
            below = Path(root).relative_to(source).as_posix()
            for name in names:
                remote = "/".join(part for part in (inner.rstrip("/"), below if below != "." else "", name) if part)
                store.makedirs(remote.rsplit("/", 1)[0], exist_ok=True)
                store.put_file(os.path.join(root, name), remote)
    shutil.rmtree(source)


def put_files(location: str, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, one after the other. A file that is there is replaced, and on local disk never half.

    Args:
        location: The folder. It is made if it is not there.
        files: The contents of the files, by their paths in the folder.
    """
    folder = local_path(location)
    if folder is not None:
        for name, data in files.items():
            _put_local(folder / name, data)
    elif is_through_mlflow(location):
        with tempfile.TemporaryDirectory(prefix="trainlib-files-") as staged, without_retry_lines():
            for name, data in files.items():
                source = Path(staged, name)
                source.parent.mkdir(parents=True, exist_ok=True)
                source.write_bytes(data)
                _artifacts(location).log_artifact(str(source), name.rpartition("/")[0] or None)
    else:
        store, inner = filesystem(location)
        for name, data in files.items():
            remote = f"{inner.rstrip('/')}/{name}"
            store.makedirs(remote.rpartition("/")[0], exist_ok=True)
            store.pipe_file(remote, data)


def _put_local(target: Path, data: bytes) -> None:
    new = _make_folders(target.parent)
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        aside.write_bytes(data)
        _sync(aside)
        os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)
    for folder in (target.parent, *new):
        _sync(folder)


def download(location: str, target: Path) -> None:
    """Copy the folder at ``location`` into the folder ``target``.

    Raises:
        ValueError: a link in it leads out of it.
    """
    source = local_path(location)
    if source is not None:
        _require_no_way_out(source)
    target.mkdir(parents=True, exist_ok=True)
    if source is not None:
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif is_through_mlflow(location):
        with without_retry_lines(), without_progress_bars():
            _artifacts(location).download_artifacts("", dst_path=str(target))
    else:
        store, inner = filesystem(location)
        store.get(inner.rstrip("/") + "/", str(target), recursive=True)


def delete(location: str) -> None:
    """Remove the folder at ``location``, if it exists."""
    if not location:
        raise ValueError("there is no location to delete: an empty one would mean the working directory")
    if (path := local_path(location)) is not None:
        shutil.rmtree(path, ignore_errors=True)
    elif is_through_mlflow(location):
        with without_retry_lines():
            _artifacts(location).delete_artifacts()
    else:
        store, inner = filesystem(location)
        if store.exists(inner):
            store.rm(inner, recursive=True)


def _require_no_way_out(folder: Path) -> None:
    """Refuse links that lead out of a folder, since a copy would contain whatever they point to, and links in circles."""
    inside = folder.resolve()
    for root, folders, files in os.walk(folder):
        for path in (Path(root, name) for name in (*folders, *files)):
            if not path.is_symlink():
                continue
            target = path.resolve()
            if not target.is_relative_to(inside) or path.parent.resolve().is_relative_to(target):
                raise ValueError(
                    f"{path} is a link to {os.readlink(path)}, which is not inside {folder}. Put a copy there instead of the link"
                )


def _move(source: Path, target: Path) -> None:
    if _same_disk(source, target.parent):
        sync_folder(source)
        try:
            os.rename(source, target)
            return
        except OSError as error:
            if error.errno != errno.EXDEV:  # one disk that is mounted twice
                raise
    # Another file system: copy to a temporary name first, so that the target is never incomplete.
    aside = target.with_name(f".{target.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        shutil.copytree(source, aside)
        sync_folder(aside)
        os.rename(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    shutil.rmtree(source)


def _same_disk(source: Path, target: Path) -> bool:
    return os.stat(source).st_dev == os.stat(target).st_dev


def sync_folder(folder: Path) -> None:
    """Wait until a folder, everything in it, and their names are on the disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if os.path.isfile(path):  # not a pipe, nor a link that leads nowhere
                _sync(path)
        _sync(root)


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync a folder
            raise
    finally:
        os.close(descriptor)


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those around it. Returns the parents whose contents changed by that, the innermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return [each.parent for each in missing]


def read_text(location: str) -> str | None:
    """The text of a file at a path or an fsspec URI. None if it does not exist."""
    data = read_bytes(location)
    return data.decode() if data is not None else None


def read_bytes(location: str) -> bytes | None:
    """A file at a path or an fsspec URI. None if it does not exist."""
    store, inner = filesystem(location)
    try:
        return store.cat_file(inner)  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None


def write_bytes(location: str, data: bytes) -> None:
    """Write a file at a path or an fsspec URI. Its folder must exist."""
    store, inner = filesystem(location)
    store.pipe_file(inner, data)


def filesystem(location: str):  # type: ignore[no-untyped-def]
    """The fsspec file system of a URI, and the path in it."""
    import fsspec

    try:
        return fsspec.core.url_to_fs(absolute(location))
    except (ImportError, ValueError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(masked_uri(f"cannot reach {location}: {reason}")) from error


def _artifacts(location: str):  # type: ignore[no-untyped-def]
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

    return get_artifact_repository(location)
