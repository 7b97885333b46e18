"""A checkpoint: a dict, a directory or a URI. Each can be converted into the others."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from trainlib import _storage as storage
from trainlib.errors import CheckpointNotFoundError, InvalidArgumentError, UntrustedCheckpointError

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["Checkpoint"]

DICT_FILE = "dict_checkpoint.pkl"
PREPROCESSOR_KEY = "_preprocessor"
PREPROCESSOR_FILE = "preprocessor.pkl"
ADDED_KEYS = ("_timestamp", PREPROCESSOR_KEY, "_current_checkpoint_id")
"""The keys that trainlib adds to a saved dict."""


class Checkpoint:
    """What a training function saves, and what it resumes from.

    Example:
        >>> checkpoint = Checkpoint.from_dict({"epoch": 3})
        >>> with checkpoint.as_directory() as path:
        ...     Checkpoint.from_directory(path).to_dict()
        {'epoch': 3}
    """

    def __init__(
        self, path: str | Path | None = None, *, data: dict[str, Any] | None = None, trust: bool = False
    ) -> None:
        """A checkpoint of a directory or a URI. See :meth:`from_dict` for one in memory.

        Args:
            path: The directory or URI.
            data: The dict, for one in memory.
            trust: Whether code in it may run. A pickled dict or model can contain any code. It is loaded only from the
                registry, from files of your own, or with this.
        """
        if (path is None) == (data is None):
            raise ValueError("a checkpoint needs a directory or URI, or a dict: pass one of them")
        if data is not None and not isinstance(data, dict):
            raise InvalidArgumentError(f"Checkpoint.from_dict() takes a dict, got {type(data).__name__}")
        self._data = data
        self._location = storage.absolute(str(path)) if path is not None else None
        self._trust = trust

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Checkpoint:
        """A checkpoint of a dict, e.g. ``{"epoch": 3, "model_weights": model.state_dict()}``."""
        return cls(data=data)

    @classmethod
    def from_directory(cls, path: str | Path) -> Checkpoint:
        """A checkpoint of a local directory. It is copied only when the checkpoint is reported."""
        if not Path(path).is_dir():
            found = "a file" if Path(path).exists() else "nothing"
            raise CheckpointNotFoundError(
                f"no checkpoint directory at {Path(path).absolute()}: found {found}. Write the files first, then create the "
                "checkpoint of their folder"
            )
        return cls(path)

    @classmethod
    def from_uri(cls, uri: str, *, trust: bool = False) -> Checkpoint:
        """A checkpoint in any store that fsspec or MLflow can reach, e.g. ``s3://bucket/run/checkpoint_000003``.

        Loading a dict or a model from it may run code that it contains: that needs ``trust=True``.
        """
        return cls(uri, trust=trust)

    # -- properties --------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The directory or URI. A checkpoint in memory has neither."""
        if self._location is None:
            raise ValueError("this checkpoint is a dict in memory, and has no path: use to_directory() to write it")
        return self._location

    @property
    def uri(self) -> str | None:
        """The location as a URI. None for a checkpoint in memory."""
        if self._location is None:
            return None
        path = storage.local_path(self._location)
        return path.as_uri() if path is not None else self._location

    def get_internal_representation(self) -> tuple[str, Any]:
        """What it holds: ``("dict", ...)``, ``("local_path", ...)`` or ``("uri", ...)``."""
        if self._data is not None:
            return "dict", self._data
        return ("local_path" if storage.local_path(self.path) is not None else "uri"), self.path

    def require(self) -> Checkpoint:
        """Returns itself, or raises an error if its location does not exist."""
        if self._location is not None and not storage.exists(self._location):
            raise CheckpointNotFoundError(
                f"no checkpoint at {self._location}: nothing is there. Pass the directory or URI of a saved checkpoint, e.g. "
                "result.checkpoint.path"
            )
        return self

    def get_preprocessor(self) -> Preprocessor | None:
        """The fitted preprocessor of the training that saved it. Apply it before predicting. None if it had none."""
        if self._data is not None:
            return self._data.get(PREPROCESSOR_KEY)
        with self.as_directory() as directory:
            file = Path(directory) / PREPROCESSOR_FILE
            if file.exists():
                return self._unpickled(file)
            file = Path(directory) / DICT_FILE
            return self._unpickled(file).get(PREPROCESSOR_KEY) if file.exists() else None

    # -- conversions -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The checkpoint as a dict. A directory of other files becomes ``{relative path: bytes}``."""
        if self._data is not None:
            return self._data
        with self.as_directory() as directory:
            file = Path(directory) / DICT_FILE
            if file.exists():
                return dict(self._unpickled(file))
            files = sorted(p for p in Path(directory).rglob("*") if p.is_file())
            return {p.relative_to(directory).as_posix(): p.read_bytes() for p in files}

    def to_directory(self, path: str | Path | None = None) -> str:
        """Write it to a local directory and return its path. Default: a new temporary directory."""
        target = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="trainlib-checkpoint-"))
        if self._data is not None:
            target.mkdir(parents=True, exist_ok=True)
            with open(target / DICT_FILE, "wb") as file:
                dump(self._data, file)
        else:
            self.require()
            storage.download(self.path, target)
        return str(target)

    def to_uri(self, uri: str) -> str:
        """Write it to a URI and return that."""
        staged = Path(tempfile.mkdtemp(prefix="trainlib-checkpoint-")) / "checkpoint"
        try:
            self.to_directory(staged)
            storage.upload(staged, uri)
        finally:
            shutil.rmtree(staged.parent, ignore_errors=True)
        return uri

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """A local directory to read its files from. It is the original if that is local, else a temporary copy."""
        if self._location is not None and (local := storage.local_path(self._location)) is not None:
            self.require()
            yield str(local)
            return
        copy = self.to_directory()
        try:
            yield copy
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    # -- trust --------------------------------------------------------------------------------------

    def require_trust(self) -> None:
        """Raise an error if code in it must not run: it is neither from the registry nor a file of this user.

        Raises:
            UntrustedCheckpointError: it must not.
        """
        if self._trust or self._location is None:
            return
        local = storage.local_path(self._location)
        if local is None or local.stat().st_uid != os.getuid():
            raise UntrustedCheckpointError(
                f"{self._location} has a pickle in it, which can run any code when it is loaded, and it is not from the "
                "registry. If you trust whoever wrote it, say so: Checkpoint.from_uri(..., trust=True)"
            )

    def _unpickled(self, file: Path) -> Any:
        self.require_trust()
        return pickle.loads(file.read_bytes())

    # -- the rest -----------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Checkpoint):
            return NotImplemented
        return self._location == other._location and self._data is other._data

    def __hash__(self) -> int:
        return hash((self._location, id(self._data)))

    def __repr__(self) -> str:
        kind, held = self.get_internal_representation()
        return f"{type(self).__name__}({kind}={sorted(held, key=str) if kind == 'dict' else held!r})"


def dump(data: Any, file: IO[bytes]) -> None:
    """Pickle straight into ``file``, so that large tensors are not in memory a second time."""
    import cloudpickle

    cloudpickle.dump(data, file, protocol=pickle.HIGHEST_PROTOCOL)
