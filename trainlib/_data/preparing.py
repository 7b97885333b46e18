"""Preparing data: read, check, split, fit on train, transform, and write Parquet with a manifest. Never twice.

Where the outcome is kept follows from what it is made of: the bytes of the source, the split, the preprocessor and
the version of this code. So whoever asks for the same again, in any process, finds it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle
import filelock
import ray

from trainlib import _storage as storage
from trainlib._data.explaining import explained
from trainlib._data.prepared import MANIFEST, PreparedData, manifest_text, read_manifest
from trainlib._data.preprocessors import fingerprint, fitted, in_words, require_columns, require_numbers
from trainlib._data.sources import Source, look_at
from trainlib._data.spec import PreprocessSpec
from trainlib._data.splitting import require_split, split, split_column
from trainlib.checkpoint import PREPROCESSOR_FILE
from trainlib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data
    from ray.data.preprocessor import Preprocessor

__all__ = ["Preparation", "plan"]

Say = Callable[[str], None]

# Goes up when the same inputs give other rows than before.
CODE_VERSION = 1
_TELL_EVERY_S = 5.0


@dataclass(frozen=True)
class Preparation:
    """What is to be prepared, looked at and checked, and where it will be."""

    spec: PreprocessSpec
    source: Source
    source_digest: str
    preprocessor: Preprocessor | None
    """Not fitted yet."""
    key: str
    folder: str


def plan(spec: PreprocessSpec, preprocessor: Preprocessor | None = None) -> Preparation:
    """Look at the source, and check that what is asked for can be done with it. Nothing is read or started yet.

    Args:
        spec: what to read, how to split it, and what to apply to it.
        preprocessor: applied instead of the steps of ``spec``; one of your own, for instance.

    Raises:
        DataError: what is wrong, and with which file or column.
    """
    source = look_at(spec.source)
    schema, digest = source.schema, source.digest()
    where = spec.source
    columns = list(schema.names)
    for column, what in ((spec.target, "target"), (split_column(spec.split, spec.target), "split")):
        if column is not None and column not in columns:
            raise DataError(f"{where} has no column {column!r}, which {what} names; it has: {', '.join(columns)}")
    require_split(spec.split, spec.target, schema, where)
    preprocessor = preprocessor or _preprocessor_of(spec, schema)
    if preprocessor is not None:
        require_columns(preprocessor, columns, where)
        require_numbers(preprocessor, schema, where)
    key = _key(spec, digest, preprocessor)
    root = spec.storage_path or str(storage.home() / "data")
    return Preparation(spec, source, digest, preprocessor, key, storage.absolute(storage.join(root, key)))


def prepare(preparation: Preparation, say: Say) -> PreparedData:
    """Do it, or give what was done before. Of several processes that ask for the same, one does it, and the others wait.

    Raises:
        DataError: the rows are not what they have to be; says which row or column.
    """
    with _alone(preparation, say):
        done = read_manifest(preparation.folder)
        if done is not None:
            say(f"prepared before: {done.folder}")
            return done
        with explained(preparation.spec.source):
            return _prepare(preparation, say)


@contextmanager
def _alone(preparation: Preparation, say: Say) -> Iterator[None]:
    """Keep other processes from preparing the same in the same place; on another store, those of this machine."""
    local = storage.local_path(preparation.folder)
    lock = (local.parent if local else storage.home() / "data") / f"{preparation.key}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    mutex = filelock.FileLock(lock)
    try:
        mutex.acquire(timeout=0)
    except filelock.Timeout:
        say("another process is preparing the same: waiting for it")
        mutex.acquire()
    try:
        yield
    finally:
        mutex.release()


def _prepare(preparation: Preparation, say: Say) -> PreparedData:
    from trainlib._data.labels import require_complete, require_labels
    from trainlib._data.quiet import quiet
    from trainlib._execution import cluster

    cluster.connect()
    quiet()
    spec = preparation.spec
    dataset = _read(preparation)
    if spec.target is not None:
        say(f"looking at the labels in column {spec.target!r}")
        rows = require_labels(dataset, spec.target, spec.source)
        say(f"{rows} rows, all with a label")
    column = split_column(spec.split, spec.target)
    if column is not None and column != spec.target:
        require_complete(dataset, column, spec.source)
    say(f"splitting by {spec.split.by}: {spec.split.size:.0%} for validation")
    train, validation = split(dataset, spec.split, spec.target)
    preprocessor = preparation.preprocessor
    if preprocessor is not None:
        say(f"fitting {in_words(preprocessor)} on the rows for training")
        preprocessor = fitted(preprocessor, train)
        train, validation = preprocessor.transform(train), preprocessor.transform(validation)
    with _appears(preparation) as folder:
        parts = {"train": train, "validation": validation}
        for name, part in parts.items():
            _write(part, storage.join(folder, name), name, say)
        if preprocessor is not None:
            storage.write_bytes(storage.join(folder, PREPROCESSOR_FILE), cloudpickle.dumps(preprocessor))
        prepared = _described(preparation, folder, preprocessor)
        place = folder if storage.local_path(folder) is not None else preparation.folder
        storage.write_bytes(storage.join(place, MANIFEST), manifest_text(prepared).encode())
    say(
        f"prepared {prepared.train_rows} rows for training, {prepared.validation_rows} for validation: {prepared.folder}"
    )
    return prepared


# -- reading --------------------------------------------------------------------------------------------


def _read(preparation: Preparation) -> ray.data.Dataset:
    dataset = preparation.source.read()
    # The same inputs give the same rows in the same order.
    dataset.context.execution_options.preserve_order = True
    return dataset


def _preprocessor_of(spec: PreprocessSpec, schema: pa.Schema) -> Preprocessor | None:
    import pyarrow as pa
    from ray.data.preprocessors import Chain

    numbers = [
        each.name
        for each in schema
        if each.name != spec.target and (pa.types.is_integer(each.type) or pa.types.is_floating(each.type))
    ]
    steps = [step.preprocessor(numbers) for step in spec.steps]
    return (steps[0] if len(steps) == 1 else Chain(*steps)) if steps else None  # type: ignore[arg-type]


def _key(spec: PreprocessSpec, source_digest: str, preprocessor: Preprocessor | None) -> str:
    """What the outcome follows from. Where the source is does not matter, nor where the outcome is kept."""
    parts = [
        CODE_VERSION,
        source_digest,
        spec.target,
        spec.split.model_dump(),
        fingerprint(preprocessor) if preprocessor is not None else None,
        ray.__version__,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


# -- writing --------------------------------------------------------------------------------------------


@contextmanager
def _appears(preparation: Preparation) -> Iterator[str]:
    """A folder to write into that counts when all is there: on a disk by its name, elsewhere by the manifest beside it."""
    mark = uuid.uuid4().hex[:8]  # two that write the same at once, on two machines, do not write into one folder
    path = storage.local_path(preparation.folder)
    aside = path.with_name(f"{path.name}.part-{mark}") if path else None
    folder = str(aside) if aside else storage.join(preparation.folder, mark)
    try:
        if aside:
            aside.mkdir(parents=True)
        yield folder
    except BaseException:
        storage.delete(folder)
        raise
    if path and aside:
        for left in [path, *(other for other in path.parent.glob(f"{path.name}.part-*") if other != aside)]:
            shutil.rmtree(left, ignore_errors=True)  # of a process that did not come to its end
        aside.rename(path)


def _write(dataset: ray.data.Dataset, folder: str, name: str, say: Say) -> None:
    from trainlib._data.writing import write_parquet

    done = threading.Event()
    watch = threading.Thread(target=_tell, args=(folder, name, say, done), daemon=True)
    watch.start()
    try:
        write_parquet(dataset, folder)
    finally:
        done.set()
        watch.join()


def _tell(folder: str, name: str, say: Say, done: threading.Event) -> None:
    """Say now and then how much has been written."""
    path = storage.local_path(folder)
    say(f"writing {name}")
    while path is not None and not done.wait(_TELL_EVERY_S):
        files = [each for each in Path(path).rglob("*.parquet") if each.exists()]
        say(f"writing {name}: {len(files)} file(s), {sum(each.stat().st_size for each in files) / 1e6:.0f} MB so far")


def _described(preparation: Preparation, folder: str, preprocessor: Preprocessor | None) -> PreparedData:
    import trainlib

    spec = preparation.spec
    parts = {}
    for name in ("train", "validation"):
        try:
            parts[name] = look_at(storage.join(folder, name))
        except DataError as error:
            raise DataError(
                f"no rows of {spec.source} are left for {name} by splitting {spec.split.size:g} off by {spec.split.by} "
                f"({error}): use another size, or more data"
            ) from error
    train, validation = parts["train"], parts["validation"]
    place = preparation.folder if storage.local_path(folder) is not None else folder
    digest = hashlib.sha256((train.digest() + validation.digest()).encode()).hexdigest()[:16]
    return PreparedData(
        source=preparation.source.uri,
        source_digest=preparation.source_digest,
        folder=preparation.folder,
        train=storage.join(place, "train"),
        validation=storage.join(place, "validation"),
        target=spec.target,
        features=[name for name in train.columns if name != spec.target],
        columns=train.columns,
        train_rows=train.rows or 0,
        validation_rows=validation.rows or 0,
        digest=digest,
        code_version=f"trainlib {trainlib.__version__}, preparing {CODE_VERSION}",
        preprocessor=in_words(preprocessor),
    )
