"""Preprocessing: read, check, split, fit on train, transform, and write Parquet with a manifest. Never twice.

The folder of the result is named by a hash of the inputs: the bytes of the source, the split, the preprocessor and the
version of this code. So a second request for the same, from any process, finds it.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cloudpickle
import filelock
import ray

from trainlib import _storage as storage
from trainlib._data.manifest import MANIFEST, PreprocessedData, digest_of_file, manifest_text, read_manifest
from trainlib._data.pipeline_errors import readable_errors
from trainlib._data.preprocessors import fingerprint, fitted, require_columns, require_numbers, summarize
from trainlib._data.sources import Source, inspect_source
from trainlib._data.spec import PreprocessSpec
from trainlib._data.splitting import require_split, split, split_column
from trainlib._serving.preprocessing import PREPROCESSOR_FILE
from trainlib.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import ray.data
    from ray.data.preprocessor import Preprocessor

__all__ = ["PreprocessPlan", "plan_preprocessing", "run_preprocessing"]

Say = Callable[[str], None]

# Increase it when the same inputs give other rows than before.
CODE_VERSION = 1
_PROGRESS_EVERY_S = 5.0


@dataclass(frozen=True)
class PreprocessPlan:
    """What to preprocess, already checked, and where the result will be."""

    spec: PreprocessSpec
    source: Source
    source_digest: str
    preprocessor: Preprocessor | None
    """Not fitted yet."""
    key: str
    folder: str


def plan_preprocessing(spec: PreprocessSpec, preprocessor: Preprocessor | None = None) -> PreprocessPlan:
    """Inspect the source, and check that the spec fits it. Starts no cluster.

    Args:
        spec: what to read, how to split it, and what to apply to it.
        preprocessor: applied instead of the steps of ``spec``, e.g. one of your own.

    Raises:
        DataError: the source and the spec do not fit. The message names the file or column.
    """
    source = inspect_source(spec.source)
    schema, digest = source.schema, source.digest()
    where = spec.source
    columns = list(schema.names)
    for column, what in ((spec.target, "target"), (split_column(spec.split, spec.target), "split")):
        if column is not None and column not in columns:
            raise DataError(f"{what} names the column {column!r}, but {where} has only: {', '.join(columns)}")
    require_split(spec.split, spec.target, schema, where)
    preprocessor = preprocessor or _preprocessor_of(spec, schema)
    if preprocessor is not None:
        require_columns(preprocessor, columns, where)
        require_numbers(preprocessor, schema, where)
    key = _key(spec, digest, preprocessor)
    root = spec.storage_path or str(storage.home() / "data")
    return PreprocessPlan(spec, source, digest, preprocessor, key, storage.absolute(storage.join(root, key)))


def run_preprocessing(plan: PreprocessPlan, say: Say) -> PreprocessedData:
    """Preprocess, or return the earlier result. If several processes want the same, one works and the others wait.

    Raises:
        DataError: some rows are bad. The message names the row or column.
    """
    with _locked(plan, say):
        done = read_manifest(plan.folder)
        if done is not None:
            say(f"already preprocessed: {done.folder}")
            return done
        with readable_errors(plan.spec.source):
            return _preprocess(plan, say)


@contextmanager
def _locked(plan: PreprocessPlan, say: Say) -> Iterator[None]:
    """Keep other processes from writing the same folder. For a remote store, only processes on this machine."""
    local = storage.local_path(plan.folder)
    lock = (local.parent if local else storage.home() / "data") / f"{plan.key}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    mutex = filelock.FileLock(lock)
    try:
        mutex.acquire(timeout=0)
    except filelock.Timeout:
        say("another process is preprocessing the same data: waiting for it")
        mutex.acquire()
    try:
        yield
    finally:
        mutex.release()


def _preprocess(plan: PreprocessPlan, say: Say) -> PreprocessedData:
    from trainlib._data.labels import require_complete, require_labels
    from trainlib._data.quiet import quiet
    from trainlib._execution import cluster

    cluster.connect()
    quiet()
    spec = plan.spec
    dataset = _read(plan)
    if spec.target is not None:
        say(f"checking the labels in column {spec.target!r}")
        rows = require_labels(dataset, spec.target, spec.source)
        say(f"{rows} rows, all with a label")
    column = split_column(spec.split, spec.target)
    if column is not None and column != spec.target:
        require_complete(dataset, column, spec.source)
    test_share = f", {spec.split.test_size:.0%} held out for the test" if spec.split.test_size else ""
    say(f"splitting by {spec.split.by}: {spec.split.size:.0%} for validation{test_share}")
    parts = split(dataset, spec.split, spec.target)
    preprocessor = plan.preprocessor
    if preprocessor is not None:
        say(f"fitting {summarize(preprocessor)} on the training rows")
        preprocessor = fitted(preprocessor, parts["train"])
        # The rows for the test stay as they are: models with other preprocessors are compared on them.
        parts |= {name: preprocessor.transform(parts[name]) for name in ("train", "validation")}
    with _new_folder(plan) as folder:
        for name, part in parts.items():
            _write(part, storage.join(folder, name), name, say)
        pickled = cloudpickle.dumps(preprocessor) if preprocessor is not None else None
        if pickled is not None:
            storage.write_bytes(storage.join(folder, PREPROCESSOR_FILE), pickled)
        data = _manifest_of(plan, folder, list(parts), summarize(preprocessor), pickled)
        place = folder if storage.local_path(folder) is not None else plan.folder
        storage.write_bytes(storage.join(place, MANIFEST), manifest_text(data).encode())
    held_out = f", {data.test_rows} held out" if data.test is not None else ""
    say(
        f"preprocessed {data.train_rows} rows for training, {data.validation_rows} for validation{held_out}: {data.folder}"
    )
    return data


# -- reading --------------------------------------------------------------------------------------------


def _read(plan: PreprocessPlan) -> ray.data.Dataset:
    dataset = plan.source.read()
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
    """A hash of all that determines the result. Where the source and the result are stored does not matter."""
    parts = [
        CODE_VERSION,
        source_digest,
        spec.target,
        spec.split.model_dump(exclude=None if spec.split.test_size else {"test_size"}),  # as before there was one
        fingerprint(preprocessor) if preprocessor is not None else None,
        ray.__version__,
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


# -- writing --------------------------------------------------------------------------------------------


@contextmanager
def _new_folder(plan: PreprocessPlan) -> Iterator[str]:
    """A folder to write into. It becomes visible when complete: on local disk by a rename, elsewhere by the manifest."""
    mark = uuid.uuid4().hex[:8]  # two machines that write the same at once use two folders
    path = storage.local_path(plan.folder)
    aside = path.with_name(f"{path.name}.part-{mark}") if path else None
    folder = str(aside) if aside else storage.join(plan.folder, mark)
    try:
        if aside:
            aside.mkdir(parents=True)
        yield folder
    except BaseException:
        storage.delete(folder)
        raise
    if path and aside:
        for left in [path, *(other for other in path.parent.glob(f"{path.name}.part-*") if other != aside)]:
            shutil.rmtree(left, ignore_errors=True)  # left over from a process that was killed
        aside.rename(path)


def _write(dataset: ray.data.Dataset, folder: str, name: str, say: Say) -> None:
    from trainlib._data.writing import write_parquet

    done = threading.Event()
    # In a copy of the context: who is told may ask which run of Prefect this is.
    told = partial(contextvars.copy_context().run, _say_progress, folder, name, say, done)
    watch = threading.Thread(target=told, daemon=True)
    watch.start()
    try:
        write_parquet(dataset, folder)
    finally:
        done.set()
        watch.join()


def _say_progress(folder: str, name: str, say: Say, done: threading.Event) -> None:
    """Say every few seconds how much has been written."""
    path = storage.local_path(folder)
    say(f"writing {name}")
    while path is not None and not done.wait(_PROGRESS_EVERY_S):
        files = [each for each in Path(path).rglob("*.parquet") if each.exists()]
        say(f"writing {name}: {len(files)} file(s), {sum(each.stat().st_size for each in files) / 1e6:.0f} MB so far")


def _manifest_of(
    plan: PreprocessPlan, folder: str, names: list[str], preprocessor: str, pickled: bytes | None
) -> PreprocessedData:
    import trainlib

    spec = plan.spec
    parts = {}
    for name in names:
        try:
            parts[name] = inspect_source(storage.join(folder, name))
        except DataError as error:
            test_size = f" and test_size {spec.split.test_size:g}" if spec.split.test_size else ""
            raise DataError(
                f"the split by {spec.split.by} with size {spec.split.size:g}{test_size} leaves no rows of {spec.source} for "
                f"{name} ({error}). Use another size, or more data"
            ) from error
    train, validation, test = parts["train"], parts["validation"], parts.get("test")
    place = plan.folder if storage.local_path(folder) is not None else folder
    digest = hashlib.sha256("".join(part.digest() for part in parts.values()).encode()).hexdigest()[:16]
    return PreprocessedData(
        source=plan.source.uri,
        source_digest=plan.source_digest,
        folder=plan.folder,
        train=storage.join(place, "train"),
        validation=storage.join(place, "validation"),
        target=spec.target,
        features=[name for name in train.columns if name != spec.target],
        columns=train.columns,
        train_rows=train.rows or 0,
        validation_rows=validation.rows or 0,
        digest=digest,
        code_version=f"trainlib {trainlib.__version__}, preprocessing {CODE_VERSION}",
        preprocessor=preprocessor,
        preprocessor_digest=digest_of_file(pickled) if pickled is not None else None,
        split=spec.split.summary,
        test=storage.join(place, "test") if test is not None else None,
        test_rows=(test.rows or 0) if test is not None else 0,
        test_digest=test.digest() if test is not None else None,
    )
