"""Tables: read from a source, checked, split, scaled on the training part only, and kept as Parquet."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainlib import storage

if TYPE_CHECKING:
    import pandas as pd

DIGITS = "sklearn:digits"
_MANIFEST = "manifest.json"


@dataclass(frozen=True)
class PreparedData:
    """A table, split and scaled. ``train`` and ``validation`` are Parquet files."""

    source: str
    train: str
    validation: str
    target: str
    features: list[str]
    train_rows: int
    validation_rows: int
    digest: str


def version_of(source: str) -> str:
    """What changes when the source's bytes may have changed. Cheap: it does not read them.

    Raises:
        FileNotFoundError: there is no such source.
    """
    if source == DIGITS:
        import sklearn

        return f"scikit-learn {sklearn.__version__}"
    import fsspec

    filesystem, path = fsspec.core.url_to_fs(source)
    if not filesystem.exists(path):
        raise FileNotFoundError(
            f"there is no data at {source}: pass the path or URI of a CSV or Parquet file, or {DIGITS!r}"
        )
    return str(filesystem.ukey(path))


def read_table(source: str) -> pd.DataFrame:
    """A table from a CSV or Parquet file at any path or URI, or scikit-learn's digits."""
    import pandas as pd

    if source == DIGITS:
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise ImportError(f"{DIGITS} needs scikit-learn: pip install 'trainlib[sklearn]'") from error
        return load_digits(as_frame=True).frame
    if source.endswith((".parquet", ".pq")):
        return pd.read_parquet(source)
    if source.endswith((".csv", ".csv.gz")):
        return pd.read_csv(source)
    raise ValueError(f"cannot tell the format of {source}: its name has to end in .csv, .csv.gz or .parquet")


def prepare(source: str, *, target: str, validation_size: float, seed: int, folder: Path) -> PreparedData:
    """Read, split and scale a table, and write it into ``folder``, which appears all at once.

    Raises:
        ValueError: the table is empty, lacks the target, or has a feature that is not a number.
    """
    if not 0.0 < validation_size < 1.0:
        raise ValueError(f"validation_size is {validation_size}: it is a share between 0 and 1, e.g. 0.2")
    table = read_table(source)
    if target not in table.columns:
        raise ValueError(f"{source} has no column {target!r}; it has: {', '.join(map(str, table.columns))}")
    features = [str(column) for column in table.columns if column != target]
    for column in features:
        if table[column].dtype.kind not in "biuf":
            raise ValueError(
                f"column {column!r} of {source} is of type {table[column].dtype}: features have to be numbers"
            )
    shuffled = table.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    rows = round(len(shuffled) * validation_size)
    if rows == 0 or rows == len(shuffled):
        raise ValueError(f"{source} has {len(shuffled)} row(s): too few for a validation part of {validation_size:g}")
    validation, train = shuffled.iloc[:rows], shuffled.iloc[rows:]
    mean, deviation = train[features].mean(), train[features].std().replace(0.0, 1.0)
    parts = {"train": train, "validation": validation}
    aside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    digest = hashlib.sha256()
    for name, part in parts.items():
        scaled = ((part[features] - mean) / deviation).astype("float32").assign(**{target: part[target]})
        scaled.to_parquet(aside / f"{name}.parquet", index=False)
        digest.update((aside / f"{name}.parquet").read_bytes())
    prepared = PreparedData(
        source=source,
        train=str(folder / "train.parquet"),
        validation=str(folder / "validation.parquet"),
        target=target,
        features=features,
        train_rows=len(train),
        validation_rows=len(validation),
        digest=digest.hexdigest()[:16],
    )
    (aside / _MANIFEST).write_text(json.dumps(asdict(prepared), indent=2))
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)
    return prepared


def folder_for(*inputs: object) -> Path:
    """Where the outcome of these inputs is kept."""
    key = hashlib.sha256(json.dumps(inputs, default=str).encode()).hexdigest()[:16]
    return storage.home() / "data" / key
