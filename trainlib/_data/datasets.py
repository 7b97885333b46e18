"""Turns whatever a user passes as a dataset into a Ray Dataset, and collects facts about it without reading it."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainlib._data.manifest import made_from
from trainlib._data.sources import Source, inspect_source
from trainlib._digest import digest
from trainlib._secrets import masked_uri
from trainlib.errors import DataError, InvalidArgumentError

if TYPE_CHECKING:
    import ray.data

    from trainlib._data.config import DataConfig

__all__ = ["DatasetFacts", "OpenDataset"]

_ACCEPTED = (
    "a Ray Dataset, a pandas DataFrame, a Hugging Face dataset, the path or URI of CSV, Parquet or JSON Lines files, or a "
    "function that returns one of these"
)

_KINDS = {
    "pandas.DataFrame",
    "ray.Dataset",
    "ray.MaterializedDataset",
    "datasets.Dataset",
    "datasets.IterableDataset",
}


@dataclass(frozen=True)
class DatasetFacts:
    """What the registry records about a dataset."""

    name: str
    source: str
    kind: str
    """``files``, ``pandas``, ``huggingface`` or ``ray``."""
    digest: str
    rows: int | None
    columns: dict[str, str] | None
    made_from: dict[str, str] = field(default_factory=dict)
    """For preprocessed data: its source, its preprocessor and the version of the code. Empty otherwise."""


@dataclass(frozen=True)
class OpenDataset:
    """A Ray Dataset, ready to be split, with its facts."""

    dataset: ray.data.Dataset
    facts: DatasetFacts


def inspect_sources(datasets: dict[str, Any]) -> dict[str, Source]:
    """Inspect those datasets that are files, before anything is started.

    Raises:
        DataError: a file is missing or broken. The message names it.
    """
    return {name: _inspect(name, given) for name, given in datasets.items() if isinstance(given, (str, os.PathLike))}


def _inspect(name: str, given: str | os.PathLike[str]) -> Source:
    try:
        return inspect_source(given)
    except DataError as error:
        raise type(error)(f"datasets[{name!r}]: {error}") from error


def open_dataset(name: str, given: Any, source: Source | None = None) -> OpenDataset:
    """Make a Ray Dataset of what was passed under ``name``. ``source`` saves inspecting its files a second time.

    Raises:
        InvalidArgumentError: it is not a dataset.
        DataError: it is empty, or cannot be read.
    """
    import pandas as pd
    import ray.data

    if isinstance(given, (str, os.PathLike)):
        source = source or inspect_source(given)
        origin = made_from(given)
        facts = DatasetFacts(
            name, masked_uri(source.uri), "files", source.digest(), source.rows, source.columns, origin
        )
        return OpenDataset(source.read(), facts)
    if isinstance(given, pd.DataFrame):
        return _from_frame(name, given)
    if isinstance(given, ray.data.Dataset):
        return OpenDataset(given, _facts_of_ray(name, given))
    if type(given).__module__.partition(".")[0] == "datasets":
        return _from_hugging_face(name, given)
    if callable(given):
        return _from_function(name, given)
    raise InvalidArgumentError(f"datasets[{name!r}] is a {type(given).__name__}: pass {_ACCEPTED}")


def require_rows_in_memory(datasets: dict[str, Any], config: DataConfig, workers: int) -> None:
    """Raise a DataError if a DataFrame or a Hugging Face dataset has fewer rows than there are workers to share it."""
    for name, given in datasets.items():
        kind = _kind_of(given)
        if kind in ("pandas.DataFrame", "datasets.Dataset") and config.gives_rows_to_each(name):
            require_rows(name, f"a {kind}", len(given), workers)


def require_rows(name: str, source: str, rows: int, workers: int) -> None:
    """Raise a DataError if the dataset has fewer rows than there are workers to share it."""
    if rows < workers:
        raise DataError(
            f"the dataset {name!r} ({source}) has only {rows} row(s) for {workers} workers. Use fewer workers, or do not split "
            "it: DataConfig(datasets_to_split=...)"
        )


def require_dataset(name: str, given: Any) -> None:
    """Raise an InvalidArgumentError for anything that is not a dataset, without importing or starting anything."""
    kind = _kind_of(given)
    if kind.startswith("datasets.") and isinstance(given, dict):
        raise InvalidArgumentError(
            f"datasets[{name!r}] is a dict of splits ({', '.join(given)}). Pass one of them, e.g. data['train']"
        )
    if not (isinstance(given, (str, os.PathLike)) or callable(given) or kind in _KINDS):
        raise InvalidArgumentError(f"datasets[{name!r}] is a {type(given).__name__}: pass {_ACCEPTED}")
    if kind == "pandas.DataFrame" and given.empty:
        raise DataError(f"datasets[{name!r}] is a DataFrame with no {'columns' if len(given) else 'rows'}")


def _kind_of(given: Any) -> str:
    """A dataset's class, with the library that it is from, which need not be imported for that."""
    return f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"


def digest_of(name: str, given: Any, source: Source | None) -> str:
    """A digest of what was passed under ``name``, without opening it; ``source`` is what was found if it is files."""
    if source is not None:
        return source.digest()
    module = type(given).__module__.partition(".")[0]
    if module == "pandas":
        return _digest_of_frame(given.rename(columns=str))
    if module == "ray":
        return _facts_of_ray(name, given).digest
    if module == "datasets":
        return hashlib.sha256(repr(getattr(given, "_fingerprint", "")).encode()).hexdigest()[:16]
    return digest(given)


def _digest_of_frame(frame: Any) -> str:
    import pandas as pd

    try:
        rows = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    except TypeError:  # a column of lists or arrays
        rows = pickle.dumps(frame)
    return hashlib.sha256(rows + repr(list(frame.columns)).encode()).hexdigest()[:16]


def _from_frame(name: str, frame: Any) -> OpenDataset:
    import ray.data

    require_dataset(name, frame)
    frame = frame.rename(columns=str)
    columns = {column: str(dtype) for column, dtype in frame.dtypes.items()}
    facts = DatasetFacts(name, "a pandas DataFrame", "pandas", _digest_of_frame(frame), len(frame), columns)
    return OpenDataset(ray.data.from_pandas(frame), facts)


def _from_hugging_face(name: str, given: Any) -> OpenDataset:
    import datasets
    import ray.data

    rows = len(given) if isinstance(given, datasets.Dataset) else None
    if rows == 0:
        raise DataError(f"datasets[{name!r}] is a Hugging Face dataset with no rows")
    schema = given.features.arrow_schema if given.features else None
    columns = {each.name: str(each.type) for each in schema} if schema is not None else None
    label = getattr(given.info, "dataset_name", None) or "a Hugging Face dataset"
    digest = hashlib.sha256(repr((getattr(given, "_fingerprint", label), rows, columns)).encode()).hexdigest()[:16]
    return OpenDataset(
        ray.data.from_huggingface(given), DatasetFacts(name, label, "huggingface", digest, rows, columns)
    )


def _from_function(name: str, make: Callable[[], Any]) -> OpenDataset:
    made = make()
    if callable(made) and type(made).__module__.partition(".")[0] not in ("ray", "datasets", "pandas"):
        raise InvalidArgumentError(
            f"the function for datasets[{name!r}] returned a {type(made).__name__}: return {_ACCEPTED}"
        )
    opened = open_dataset(name, made)
    if opened.facts.kind == "files":
        return opened
    label = f"{getattr(make, '__module__', '?')}:{getattr(make, '__qualname__', type(make).__name__)}"
    return replace(opened, facts=replace(opened.facts, source=label))


def _facts_of_ray(name: str, dataset: ray.data.Dataset) -> DatasetFacts:
    """The facts that are in the dataset's plan. Nothing is executed to get them."""
    rows = dataset._meta_count()
    if rows == 0:
        raise DataError(f"datasets[{name!r}] is a Ray Dataset with no rows")
    schema = dataset.schema(fetch_if_missing=False)
    columns = dict(zip(schema.names, map(str, schema.types), strict=True)) if schema is not None else None
    files = sorted(dataset.input_files())
    digest = hashlib.sha256(repr((files, rows, columns, dataset.name)).encode())
    for file in files:
        if os.path.exists(file):
            status = os.stat(file)
            digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    source = os.path.commonpath(files) if len(files) > 1 and all(map(os.path.isabs, files)) else ", ".join(files[:3])
    return DatasetFacts(name, source or "a Ray Dataset", "ray", digest.hexdigest()[:16], rows, columns)
