"""A checkpoint: a dict, a directory, a URI or bytes. Each can be converted into the others."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trainlib import _other_nodes as other_nodes
from trainlib import _packing as packing
from trainlib import _storage as storage
from trainlib._pickling import dump, dumps, plain_loads
from trainlib._secrets import masked_uri
from trainlib._serving.preprocessing import DICT_FILE, PREPROCESSOR_FILE, PREPROCESSOR_KEY
from trainlib.errors import CheckpointNotFoundError, InvalidArgumentError, UntrustedCheckpointError

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

    from trainlib._execution.held import Held

__all__ = ["Checkpoint"]

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

    kind: ClassVar[str] = ""
    """The framework whose models it holds. A checkpoint that is saved comes back as the class with this kind."""

    # Defaults for checkpoints that an older version has pickled.
    _packed: bytes | None = None
    _held: Held | None = None
    _preprocessor: Preprocessor | None = None
    _node: str | None = None
    _is_temporary: bool = False

    def __init__(
        self,
        local_path: str | Path | None = None,
        data_dict: dict[str, Any] | None = None,
        uri: str | None = None,
        *,
        path: str | Path | None = None,
        trust: bool = False,
    ) -> None:
        """A checkpoint of a directory, a dict or a URI. Pass one of them.

        Args:
            local_path: The directory. A URI does as well.
            data_dict: The dict, for one in memory.
            uri: The URI.
            path: Another name of ``local_path``.
            trust: Whether code in it may run. A pickled dict or model can contain any code. It is loaded only from the
                registry, from files of your own, or with this.
        """
        places = [each for each in (local_path, uri, path) if each is not None]
        if len(places) + (data_dict is not None) != 1:
            raise ValueError("a checkpoint needs a directory or URI, or a dict: pass one of them")
        if data_dict is not None and not isinstance(data_dict, dict):
            raise InvalidArgumentError(f"Checkpoint.from_dict() takes a dict, got {type(data_dict).__name__}")
        self._data = data_dict
        self._location = storage.absolute(os.fspath(places[0])) if places else None
        self._trust = trust

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """A checkpoint of a dict, e.g. ``{"epoch": 3, "model_weights": model.state_dict()}``."""
        return cls(data_dict=data)

    @classmethod
    def from_directory(cls, path: str | Path) -> Self:
        """A checkpoint of a local directory. It is copied only when the checkpoint is reported."""
        if not Path(path).is_dir():
            found = "a file" if Path(path).exists() else "nothing"
            raise CheckpointNotFoundError(
                f"no checkpoint directory at {Path(path).absolute()}: found {found}. Write the files first, then create the "
                "checkpoint of their folder"
            )
        return cls(path)

    @classmethod
    def from_uri(cls, uri: str, *, trust: bool = False) -> Self:
        """A checkpoint in any store that fsspec or MLflow can reach, e.g. ``s3://bucket/run/checkpoint_000003``.

        Loading a dict or a model from it may run code that it contains: that needs ``trust=True``.
        """
        return cls(uri=uri, trust=trust)

    @classmethod
    def from_bytes(cls, data: bytes, *, trust: bool = False) -> Self:
        """A checkpoint of what :meth:`to_bytes` gave.

        Plain values and NumPy arrays are loaded from a dict in it. Anything else, such as a tensor, may run code that comes
        with it: that needs ``trust=True``.

        Example:
            >>> Checkpoint.from_bytes(Checkpoint.from_dict({"epoch": 3}).to_bytes()).to_dict()
            {'epoch': 3}
        """
        made = cls.from_checkpoint(Checkpoint(data_dict={}, trust=trust))
        made._data, made._packed = None, packing.require_packed(data)
        return made

    @classmethod
    def from_checkpoint(cls, other: Checkpoint) -> Self:
        """The same checkpoint as one of this class, e.g. as a TorchCheckpoint, which has ``get_model()``.

        The class's ``__init__`` is not called: that of a subclass may want other arguments.
        """
        made = cls.__new__(cls)
        made.__dict__.update(other.__dict__)
        if other._is_temporary:
            weakref.finalize(made, _keep, other)  # its files go when both are gone
        return made

    @classmethod
    def _of_held(cls, held: Held) -> Self:
        """A checkpoint whose bytes are in Ray's object store. A training of this process has put them there."""
        made = cls.from_checkpoint(Checkpoint(data_dict={}, trust=True))
        made._data, made._held = None, held
        return made

    @classmethod
    def _in_temporary_folder(cls, folder: str | Path, *, trust: bool = False) -> Self:
        """A checkpoint of files that nobody else needs: they go with it. report() makes its own copy of them."""
        made = cls.from_checkpoint(Checkpoint(folder, trust=trust))
        made._is_temporary = True
        weakref.finalize(made, shutil.rmtree, str(folder), ignore_errors=True)
        return made

    # -- properties --------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The directory or URI. A checkpoint in memory has neither."""
        if self._location is None:
            raise ValueError("this checkpoint is in memory, and has no path: use to_directory() to write it")
        return self._location

    @property
    def uri(self) -> str | None:
        """The location as a URI. None for a checkpoint in memory."""
        if self._location is None:
            return None
        path = storage.local_path(self._location)
        return path.as_uri() if path is not None else self._location

    def get_internal_representation(self) -> tuple[str, Any]:
        """What it holds: ``("dict", ...)``, ``("local_path", ...)``, ``("uri", ...)`` or ``("bytes", ...)``."""
        if self._data is not None:
            return "dict", self._data
        if self._location is None:
            return "bytes", self._contents()
        return ("local_path" if storage.local_path(self._location) is not None else "uri"), self._location

    def require(self) -> Self:
        """Returns itself, or raises an error if its location does not exist."""
        self._fetch()
        if self._location is not None and not storage.exists(self._location):
            raise CheckpointNotFoundError(
                f"no checkpoint at {self._location}: nothing is there. Pass the directory or URI of a saved checkpoint, e.g. "
                "result.checkpoint.path"
            )
        return self

    def get_preprocessor(self) -> Preprocessor | None:
        """The fitted preprocessor that was saved with it. Apply it before predicting. None if it has none."""
        if self._preprocessor is not None:
            return self._preprocessor
        if self._data is not None:
            return self._data.get(PREPROCESSOR_KEY)
        found = self._read(PREPROCESSOR_FILE, DICT_FILE)
        if PREPROCESSOR_FILE in found:
            return self._unpickled(found[PREPROCESSOR_FILE])  # type: ignore[no-any-return]
        return self._unpickled(found[DICT_FILE]).get(PREPROCESSOR_KEY) if found else None

    def set_preprocessor(self, preprocessor: Preprocessor | None) -> None:
        """Keep a fitted preprocessor with it, for whoever predicts. It is written when the checkpoint is."""
        if self._data is not None:
            self._data = {**self._data, PREPROCESSOR_KEY: preprocessor}
        else:
            self._preprocessor = preprocessor

    # -- conversions -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The checkpoint as a dict. A directory of other files becomes ``{relative path: bytes}``."""
        if self._data is not None:
            return self._data
        found = self._read()
        return dict(self._unpickled(found[DICT_FILE])) if DICT_FILE in found else found

    def to_directory(self, path: str | Path | None = None) -> str:
        """Write it to a local directory and return its path. Default: a new temporary directory."""
        self.require()
        target = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="trainlib-checkpoint-"))
        if self._data is not None:
            target.mkdir(parents=True, exist_ok=True)
            with open(target / DICT_FILE, "wb") as file:
                dump(self._data, file)
        elif self._location is not None:
            storage.download(self._location, target)
        else:
            packing.unpack(self._contents(), target)
        if self._preprocessor is not None:
            with open(target / PREPROCESSOR_FILE, "wb") as file:
                dump(self._preprocessor, file)
        return str(target)

    def to_uri(self, uri: str) -> str:
        """Write it to a URI and return that.

        Raises:
            ValueError: it is a directory without files. Most stores have no empty folders.
        """
        staged = Path(tempfile.mkdtemp(prefix="trainlib-checkpoint-")) / "checkpoint"
        try:
            self.to_directory(staged)
            if not storage.has_files(staged):
                raise ValueError(
                    f"{self} has no files in it, so nobody could read it at {masked_uri(uri)}: write some first"
                )
            storage.upload(staged, uri)
        finally:
            shutil.rmtree(staged.parent, ignore_errors=True)
        return uri

    def to_bytes(self) -> bytes:
        """The checkpoint as bytes, e.g. to send it elsewhere. :meth:`from_bytes` reads them."""
        if self._data is not None:
            return packing.pack_files({DICT_FILE: dumps(self._data)})
        if self._preprocessor is None:
            if self._location is None:
                return self._contents()
            with self.as_directory() as directory:
                return packing.pack(Path(directory))
        copy = self.to_directory()
        try:
            return packing.pack(Path(copy))
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """A local directory to read its files from, with its preprocessor.

        It is the original if that is local and has everything, else a temporary copy.
        """
        if self._preprocessor is None and (local := self._local_directory()) is not None:
            yield str(local)
            return
        copy = self.to_directory()
        try:
            yield copy
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def _local_directory(self) -> Path | None:
        """Where its files are on this machine. None if they are not."""
        self._fetch()
        local = storage.local_path(self._location) if self._location is not None else None
        if local is not None:
            self.require()
        return local

    def _read(self, *names: str) -> dict[str, bytes]:
        """Those of its files that have these paths. Without any, all of them."""
        self._fetch()
        if self._location is None:
            return packing.read_files(self._contents(), names)
        with self.as_directory() as directory:
            files = sorted(file for file in Path(directory).rglob("*") if file.is_file())
            paths = {file.relative_to(directory).as_posix(): file for file in files}
            return {path: file.read_bytes() for path, file in paths.items() if path in names or not names}

    def _contents(self) -> bytes:
        """Its bytes, if they are in memory."""
        if self._packed is not None:
            return self._packed
        assert self._held is not None
        try:
            return self._held.read()
        except LookupError as error:
            raise CheckpointNotFoundError(
                "this checkpoint was never written, because of CheckpointConfig(num_to_keep=0). It was in the memory of Ray, which "
                "has ended. Use it before ray.shutdown(), or keep a checkpoint: num_to_keep=1"
            ) from error

    @property
    def _is_lost(self) -> bool:
        """Whether it was in the memory of a Ray that has it no more."""
        if self._held is None:
            return False
        try:
            self._held.read()
        except LookupError:
            return True
        return False

    # -- in other processes -------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """For pickling. What others cannot read, being in memory or temporary, goes with it; a folder stays where it is."""
        state = {**self.__dict__, "_is_temporary": False}
        if self._is_temporary:
            assert self._location is not None
            packed = packing.pack(Path(self._location))
            return {**state, "_location": None, "_packed": packed, "_trust": self._trust or self._is_own()}
        if self._held is not None:
            return {**state, "_held": None, "_packed": self._contents()}
        if self._location is not None and storage.local_path(self._location) is not None:
            state["_node"] = self._node or other_nodes.this_node()
        return state

    def _fetch(self) -> None:
        """Bring its files from the node where it was pickled, if they are there and not here."""
        if self._node is None or self._location is None or storage.exists(self._location):
            return
        found = other_nodes.fetch_folder(self._node, self._location)
        if found is not None:
            self._packed, self._location, self._trust = found.packed, None, self._trust or found.is_own

    # -- trust --------------------------------------------------------------------------------------

    def require_trust(self) -> None:
        """Raise an error if code in it must not run: it is neither from the registry nor a file of this user.

        Raises:
            UntrustedCheckpointError: it must not.
        """
        if self._trust or self._data is not None or self._is_own():
            return
        what, how = (
            ("These bytes have", "from_bytes") if self._location is None else (f"{self._location} has", "from_uri")
        )
        raise UntrustedCheckpointError(
            f"{what} a pickle in it, which can run any code when it is loaded, and it is not from the registry. If you trust "
            f"whoever wrote it, say so: Checkpoint.{how}(..., trust=True)"
        )

    def _is_own(self) -> bool:
        """Whether its files belong to this user."""
        local = storage.local_path(self._location) if self._location is not None else None
        return local is not None and storage.is_own(local)

    def _unpickled(self, pickled: bytes) -> Any:
        if self._location is None and not self._trust:
            try:
                return plain_loads(pickled)
            except pickle.UnpicklingError:
                pass  # there is more in it than plain values
        self.require_trust()
        return pickle.loads(pickled)

    # -- the rest -----------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Checkpoint):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self._location, id(self._data), id(self._packed), id(self._held)

    def __repr__(self) -> str:
        if self._location is None and self._data is None:
            return f"{type(self).__name__}(in memory)"
        kind, held = self.get_internal_representation()
        return f"{type(self).__name__}({kind}={sorted(held, key=str) if kind == 'dict' else held!r})"


def _keep(other: Checkpoint) -> None:
    """Called when a checkpoint is gone that needs the files of another one: until then, that one is not gone either."""
