"""Checks the arguments of a trainer that learns from a table with a column of labels, before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib._settings import TrainerSettings
from trainlib.errors import DataError, InvalidArgumentError

if TYPE_CHECKING:
    from trainlib._boosting.library import Library
    from trainlib._data.sources import Source

__all__ = [
    "columns_named_in",
    "given_params",
    "require_column",
    "require_label",
    "require_labels_in_files",
    "require_matrix_arguments",
    "require_names",
    "require_names_in_frame",
    "require_no_train_arguments",
    "require_params",
    "require_patience",
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
    if not isinstance(datasets, Mapping) or not datasets:
        raise ValueError(
            f"{trainer} learns from the dataset 'train'. No datasets were given. Pass datasets={{'train': ...}}"
        )
    given = ", ".join(map(repr, datasets))
    raise ValueError(
        f"{trainer} learns from the dataset 'train', but the datasets are {given}. Pass datasets={{'train': ...}}"
    )


def require_params(params: Any, name: str, trainer: str, example: str) -> None:
    """Raise an InvalidArgumentError if an argument is not a dict with names as keys. ``example`` is one that is."""
    if not isinstance(params, dict) or not all(isinstance(key, str) for key in params):
        what = "missing" if params is None else f"{params!r}"[:80]
        raise InvalidArgumentError(f"{name} of {trainer} is {what}: pass a dict, e.g. {name}={example}")


def given_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """A library's parameters without those that are None, which mean nothing to it.

    Example:
        >>> given_params({"max_depth": None, "eta": 0.1})
        {'eta': 0.1}
    """
    return {name: value for name, value in params.items() if value is not None}


def columns_named_in(arguments: Mapping[str, Any], columns: Iterable[str]) -> dict[str, str]:
    """The columns that the arguments of a matrix name, by what they are for.

    Example:
        >>> columns_named_in({"weight": "w", "nthread": 2}, ["weight", "qid"])
        {'weight': 'w'}
    """
    return {what: arguments[what] for what in columns if what in arguments}


def require_matrix_arguments(given: Any, datasets: Iterable[str], library: Library, trainer: str) -> None:
    """Raise an InvalidArgumentError if arguments for the datasets' matrices cannot be used."""
    example = "{'train': {'weight': 'w'}}"
    require_params(given, "dmatrix_params", trainer, example)
    known = list(datasets)
    for name, arguments in given.items():
        if name not in known:
            raise InvalidArgumentError(
                f"dmatrix_params names the dataset {name!r}, but the datasets are {', '.join(map(repr, known))}."
                f"{_meant(name, known)} Use their names, e.g. dmatrix_params={example}"
            )
        require_params(arguments, f"dmatrix_params[{name!r}]", trainer, "{'weight': 'w'}")
        for what, value in arguments.items():
            if what in library.taken:
                raise InvalidArgumentError(
                    f"dmatrix_params[{name!r}] has {what!r}, which {trainer} sets. {library.taken[what]}"
                )
            if what not in (*library.columns, *library.arguments):
                raise InvalidArgumentError(
                    f"dmatrix_params[{name!r}] has {what!r}, which is no argument of {library.matrix}."
                    f"{_meant(what, [*library.columns, *library.arguments])} Correct its name, or leave it out"
                )
            if what in library.columns and not isinstance(value, str):
                raise InvalidArgumentError(
                    f"dmatrix_params[{name!r}][{what!r}] is {value!r:.80}: pass the name of a column. Each worker has its share of the rows"
                )


def require_no_train_arguments(given: Iterable[str], library: Library, trainer: str, known: Iterable[str]) -> None:
    """Raise an InvalidArgumentError if there are arguments that neither the trainer has nor trees can be trained with.

    Args:
        given: Their names.
        library: What it knows of, it says what to use instead of.
        trainer: Its name.
        known: The trainer's arguments.
    """
    for name in given:
        instead = library.instead.get(name) or _meant(name, list(known)).strip()
        raise InvalidArgumentError(f"{trainer} has no argument {name!r}. {instead}".strip())


def require_patience(rounds: Any, datasets: Mapping[str, Any]) -> None:
    """Raise an InvalidArgumentError if early stopping cannot work."""
    if rounds is None:
        return
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise InvalidArgumentError(f"early_stopping_rounds is {rounds!r}: pass a whole number that is 1 or more")
    if len(datasets) < 2:
        raise InvalidArgumentError(
            "early_stopping_rounds needs a dataset besides 'train' to judge by. Pass datasets={'train': ..., 'valid': ...}"
        )


def _meant(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


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
        raise DataError(f"{where} has no column {label!r}. label_column must be one of {known[:500]}")


def require_names(features: Iterable[str], forbidden: str, where: str) -> None:
    """Raise a DataError if the name of a feature has a character that a library does not take.

    Example:
        >>> require_names(["b", "a[0]"], "[]<", "the dataset 'train'")
        Traceback (most recent call last):
        ...
        trainlib.errors.DataError: the column 'a[0]' of the dataset 'train' has '[' in its name, which the library does not take. Rename the column, e.g. to 'a_0_'
    """
    for name in features:
        if wrong := [each for each in name if each in forbidden]:
            better = "".join("_" if each in forbidden else each for each in name)
            raise DataError(
                f"the column {name!r} of {where} has {wrong[0]!r} in its name, which the library does not take. Rename the column, e.g. to "
                f"{better!r}"
            )


def require_names_in_frame(rows: Any, others: Collection[str], forbidden: str) -> None:
    """Raise a DataError if ``train`` is a DataFrame with a feature that has such a name. ``others`` are no features."""
    if type(rows).__module__.partition(".")[0] == "pandas":
        require_names([str(each) for each in rows.columns if each not in others], forbidden, "the dataset 'train'")


def with_all_split(given: Any, datasets: dict[str, Any]) -> DataConfig:
    """A config that splits all rows of all datasets across the workers, unless it says otherwise, or hands out the data itself.

    Args:
        given: The user's own, if there is one, in any form that a trainer takes.
        datasets: What it is for.

    Example:
        >>> datasets = {"train": "train.csv", "valid": "valid.csv"}
        >>> with_all_split(None, datasets).splits("valid"), with_all_split(DataConfig(["train"]), datasets).splits("valid")
        (True, False)
        >>> with_all_split(None, datasets).equal, with_all_split(DataConfig(equal=True), datasets).equal
        (False, True)
    """
    config = TrainerSettings.checked(datasets=datasets, dataset_config=given).dataset_config
    if config.is_custom:
        return config
    wanted = {"datasets_to_split": "all", "equal": False}  # rounds need no equal shares: no row has to be left out
    return config.model_copy(
        update={name: value for name, value in wanted.items() if name not in config.model_fields_set}
    )
