"""Checks the arguments of a trainer that learns from a table with a column of labels, before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib.errors import DataError, InvalidArgumentError

if TYPE_CHECKING:
    from trainlib._data.sources import Source

__all__ = [
    "require_column",
    "require_label",
    "require_labels_in_files",
    "require_params",
    "require_rounds",
    "require_train",
    "with_all_split",
]


def require_train(datasets: Any, trainer: str) -> None:
    """Raise a ValueError if there is no dataset to learn from.

    Example:
        >>> require_train({"valid": "valid.csv"}, "XGBoostTrainer")
        Traceback (most recent call last):
        ...
        ValueError: XGBoostTrainer learns from the dataset 'train', but the datasets are 'valid'. Pass datasets={'train': ...}
    """
    if isinstance(datasets, Mapping) and "train" in datasets:
        return
    given = ", ".join(map(repr, datasets)) if isinstance(datasets, Mapping) and datasets else "none"
    raise ValueError(
        f"{trainer} learns from the dataset 'train', but the datasets are {given}. Pass datasets={{'train': ...}}"
    )


def require_params(params: Any, name: str, trainer: str) -> None:
    """Raise an InvalidArgumentError if an argument is not a dict with names as keys."""
    if not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
        what = "missing" if params is None else f"{params!r}"[:80]
        raise InvalidArgumentError(f"{name} of {trainer} is {what}: pass a dict, e.g. {name}={{'eta': 0.1}}")


def require_rounds(rounds: Any) -> None:
    """Raise an InvalidArgumentError if this is not a number of boosting rounds."""
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise InvalidArgumentError(f"num_boost_round is {rounds!r}: pass a whole number that is 1 or more")


def require_label(label: Any, datasets: Mapping[str, Any], trainer: str) -> None:
    """Raise an error if the label's name is missing, or is no column of a DataFrame."""
    if not isinstance(label, str) or not label:
        what = "missing" if label is None else repr(label)
        raise InvalidArgumentError(
            f"label_column of {trainer} is {what}: pass the name of the column to predict, e.g. label_column='target'"
        )
    for name, given in datasets.items():
        if type(given).__module__.partition(".")[0] == "pandas":
            require_column(label, [str(column) for column in given.columns], f"the dataset {name!r}")


def require_labels_in_files(label: str, sources: Mapping[str, Source]) -> None:
    """Raise a DataError if a dataset that is files has no such column."""
    for name, source in sources.items():
        if source.columns:
            require_column(label, source.columns, f"the dataset {name!r} ({source.uri})")


def require_column(label: str, columns: Any, where: str) -> None:
    """Raise a DataError if there is no column with the labels."""
    if label not in columns:
        known = ", ".join(map(repr, columns))
        raise DataError(f"{where} has no column {label!r}, which label_column names. Its columns are {known[:500]}")


def with_all_split(config: DataConfig | None) -> DataConfig:
    """A config that splits all datasets across the workers, unless it says which ones, or hands out the data itself.

    Example:
        >>> with_all_split(None).splits("valid"), with_all_split(DataConfig(["train"])).splits("valid")
        (True, False)
    """
    config = config or DataConfig()
    if not isinstance(config, DataConfig) or config.is_custom or "datasets_to_split" in config.model_fields_set:
        return config
    return config.model_copy(update={"datasets_to_split": "all"})
