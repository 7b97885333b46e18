"""What a user passes as a dataset, made into a Ray Dataset, with what can be told of it without reading it."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trainlib._data.prepared import made_from
from trainlib._data.sources import Source, look_at
from trainlib.errors import DataError, InvalidArgumentError

if TYPE_CHECKING:
    import ray.data

__all__ = ["DatasetFacts", "OpenDataset"]

_ACCEPTED = (
    "a Ray Dataset, a pandas DataFrame, a Hugging Face dataset, the path or URI of CSV, Parquet or JSON Lines files, or a "
    "function that makes one of these"
)


_KINDS = {
    *("pandas.DataFrame", "ray.Dataset", "ray.MaterializedDataset", "datasets.Dataset", "datasets.IterableDataset"),
}


@dataclass(frozen=True)
class DatasetFacts:
    """What the registry keeps of a dataset."""

    name: str
    source: str
    kind: str
    """``files``, ``pandas``, ``huggingface`` or ``ray``."""
    digest: str
    rows: int | None
    columns: dict[str, str] | None
    made_from: dict[str, str] = field(default_factory=dict)
    """Of a prepared dataset: what it was prepared from, and with which code."""


@dataclass(frozen=True)
class OpenDataset:
    """A Ray Dataset that is ready to be split, and the facts of it."""

    dataset: ray.data.Dataset
    facts: DatasetFacts


def look_at_all(datasets: dict[str, Any]) -> dict[str, Source]:
    """Look at the datasets that are files, before anything is started.

    Raises:
        DataError: what is wrong, and with which file.
    """
    return {name: look_at(given) for name, given in datasets.items() if isinstance(given, (str, os.PathLike))}


def open_dataset(name: str, given: Any, source: Source | None = None) -> OpenDataset:
    """A dataset of whatever was passed under ``name``; ``source`` if it is files that were looked at already.

    Raises:
        InvalidArgumentError: it is none of what can be a dataset.
        DataError: it is empty, or cannot be read.
    """
    import pandas as pd
    import ray.data

    if isinstance(given, (str, os.PathLike)):
        source = source or look_at(given)
        origin = made_from(source.uri)
        facts = DatasetFacts(name, source.uri, "files", source.digest(), source.rows, source.columns, origin)
        return OpenDataset(source.read(), facts)
    if isinstance(given, pd.DataFrame):
        return _of_frame(name, given)
    if isinstance(given, ray.data.Dataset):
        return OpenDataset(given, _facts_of_ray(name, given))
    if type(given).__module__.partition(".")[0] == "datasets":
        return _of_hugging_face(name, given)
    if callable(given):
        return _of_function(name, given)
    raise InvalidArgumentError(f"datasets[{name!r}] is a {type(given).__name__}: pass {_ACCEPTED}")


def require_rows(name: str, source: str, rows: int, workers: int) -> None:
    """Raise an error for a dataset that so many workers cannot share."""
    if rows < workers:
        raise DataError(
            f"the dataset {name!r} ({source}) has {rows} row(s), which is fewer than the {workers} workers that share it: use "
            "fewer workers, or leave it whole with DataConfig(datasets_to_split=...)"
        )


def require_dataset(name: str, given: Any) -> None:
    """Raise an InvalidArgumentError for what can be no dataset, without importing or starting anything."""
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
    if kind.startswith("datasets.") and isinstance(given, dict):
        raise InvalidArgumentError(
            f"datasets[{name!r}] is a dict of splits, {', '.join(given)}: pass one of them, e.g. data['train']"
        )
    if not (isinstance(given, (str, os.PathLike)) or callable(given) or kind in _KINDS):
        raise InvalidArgumentError(f"datasets[{name!r}] is a {type(given).__name__}: pass {_ACCEPTED}")
    if kind == "pandas.DataFrame" and given.empty:
        raise DataError(f"datasets[{name!r}] is a DataFrame without {'columns' if len(given) else 'rows'}")


def _of_frame(name: str, frame: Any) -> OpenDataset:
    import pandas as pd
    import ray.data

    require_dataset(name, frame)
    frame = frame.rename(columns=str)
    try:
        rows = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    except TypeError:  # a column of lists or arrays
        rows = pickle.dumps(frame)
    digest = hashlib.sha256(rows + repr(list(frame.columns)).encode())
    columns = {column: str(dtype) for column, dtype in frame.dtypes.items()}
    facts = DatasetFacts(name, "a pandas DataFrame", "pandas", digest.hexdigest()[:16], len(frame), columns)
    return OpenDataset(ray.data.from_pandas(frame), facts)


def _of_hugging_face(name: str, given: Any) -> OpenDataset:
    import datasets
    import ray.data

    rows = len(given) if isinstance(given, datasets.Dataset) else None
    if rows == 0:
        raise DataError(f"datasets[{name!r}] is a Hugging Face dataset without rows")
    schema = given.features.arrow_schema if given.features else None
    columns = {each.name: str(each.type) for each in schema} if schema is not None else None
    label = getattr(given.info, "dataset_name", None) or "a Hugging Face dataset"
    digest = hashlib.sha256(repr((getattr(given, "_fingerprint", label), rows, columns)).encode()).hexdigest()[:16]
    return OpenDataset(
        ray.data.from_huggingface(given), DatasetFacts(name, label, "huggingface", digest, rows, columns)
    )


def _of_function(name: str, make: Callable[[], Any]) -> OpenDataset:
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
    """What its plan tells. Nothing is executed for it."""
    rows = dataset._meta_count()
    if rows == 0:
        raise DataError(f"datasets[{name!r}] is a Ray Dataset without rows")
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
