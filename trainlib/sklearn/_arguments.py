"""Checks the arguments of a SklearnTrainer, before anything starts."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from trainlib._data.config import DataConfig
from trainlib._ray_objects import kind_of
from trainlib._settings import TrainerSettings
from trainlib.config import ScalingConfig
from trainlib.errors import DataError, InvalidArgumentError

__all__ = [
    "merged_fit_params",
    "one_process",
    "require_classes",
    "require_classes_in_frame",
    "require_cv",
    "require_estimator",
    "require_fit_params",
    "require_label_if_needed",
    "require_params",
    "require_scorable",
    "require_scoring",
    "scorers_by_name",
    "usual_score",
    "whole_datasets",
]

_CORES = "ScalingConfig(trainer_resources={'CPU': 4})"


def require_estimator(given: Any) -> None:
    """Raise an InvalidArgumentError for anything that is not an estimator.

    Example:
        >>> require_estimator("RandomForestClassifier")
        Traceback (most recent call last):
        ...
        trainlib.errors.InvalidArgumentError: estimator is a str, which scikit-learn cannot fit. Pass an estimator, e.g. RandomForestClassifier()
    """
    if isinstance(given, type):
        raise InvalidArgumentError(f"estimator is the class {given.__name__}. Pass an instance: {given.__name__}()")
    if not all(callable(getattr(given, name, None)) for name in ("fit", "get_params", "set_params")):
        what = "missing" if given is None else f"{kind_of(given)}, which scikit-learn cannot fit"
        raise InvalidArgumentError(f"estimator is {what}. Pass an estimator, e.g. RandomForestClassifier()")


def require_params(params: Any, estimator: Any) -> None:
    """Raise an error if an estimator has no such parameters."""
    if not isinstance(params, Mapping):
        raise InvalidArgumentError(f"params is {kind_of(params)}: pass a dict, e.g. params={{'max_depth': 3}}")
    if not params:
        return
    known = estimator.get_params(deep=True)
    for name in params:
        if name not in known and "__" not in str(name):  # what is in a step of a pipeline may come with that step
            raise ValueError(
                f"params: {type(estimator).__name__} has no parameter {name!r}; it has {', '.join(sorted(map(str, known)))}"
            )
    _require_settable(params, estimator)


def _require_settable(params: Mapping[str, Any], estimator: Any) -> None:
    """Set the parameters on a copy, as the worker does: only a step of a pipeline knows its own."""
    from sklearn.base import clone

    try:
        clone(estimator).set_params(**params)
    except ValueError as error:
        raise ValueError(f"params: {error}") from error
    except AttributeError as error:
        raise ValueError(
            f"params: {type(estimator).__name__} does not take {', '.join(map(repr, params))} ({error}). Before each __ stands the "
            "name of an estimator in it, e.g. a step of a pipeline"
        ) from error


def merged_fit_params(given: Any, more: Mapping[str, Any], own: Iterable[str]) -> dict[str, Any]:
    """The arguments of ``fit()``: those in ``fit_params``, and those that were passed by keywords, as Ray's trainer takes them.

    Args:
        given: ``fit_params``.
        more: Keywords that are no arguments of the trainer.
        own: The arguments of the trainer: whoever mistypes one does not mean ``fit()``.

    Raises:
        InvalidArgumentError: ``fit_params`` is no dict, or a keyword looks like an argument of the trainer.
        ValueError: something is in both.

    Example:
        >>> merged_fit_params({"a": 1}, {"sample_weight": None}, ["label_column"])
        {'a': 1, 'sample_weight': None}
    """
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgumentError(f"fit_params is {kind_of(given)}: pass a dict of arguments of fit()")
    for name in more:
        if close := difflib.get_close_matches(name, list(own), n=1, cutoff=0.8):
            raise InvalidArgumentError(
                f"SklearnTrainer has no argument {name!r}. Did you mean {close[0]!r}? Arguments of fit() go into fit_params"
            )
        if name in (given or {}):
            raise ValueError(f"{name} is passed twice: as an argument, and in fit_params")
    return {**(given or {}), **more}


def require_fit_params(given: Mapping[str, Any], estimator: Any) -> None:
    """Raise an error if ``fit()`` of an estimator has no such arguments."""
    known = inspect.signature(estimator.fit).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return
    if unknown := [name for name in given if name not in known]:
        raise ValueError(
            f"fit_params: {type(estimator).__name__}.fit() has no argument {unknown[0]!r}; it has {', '.join(known)}"
        )


def require_label_if_needed(label: Any, estimator: Any, fit_params: Mapping[str, Any]) -> None:
    """Raise an InvalidArgumentError if an estimator learns from labels, and no column has them.

    Args:
        label: The column.
        estimator: What is fitted.
        fit_params: Arguments of ``fit()``. Labels may be among them.

    Example:
        >>> from sklearn.cluster import KMeans
        >>> from sklearn.linear_model import LinearRegression
        >>> require_label_if_needed(None, KMeans(), {})
        >>> require_label_if_needed(None, LinearRegression(), {})
        Traceback (most recent call last):
        ...
        trainlib.errors.InvalidArgumentError: label_column is missing, but LinearRegression learns from labels. Pass the name of the column to predict, e.g. label_column='target'
    """
    if label is not None:
        return
    labels = _labels_argument(estimator)
    is_given = labels is not None and labels.name in fit_params
    is_required = labels is not None and labels.default is labels.empty
    if not is_given and (is_required or usual_score(estimator) is not None):
        raise InvalidArgumentError(
            f"label_column is missing, but {type(estimator).__name__} learns from labels. Pass the name of the column to predict, e.g. "
            "label_column='target'"
        )


def _labels_argument(estimator: Any) -> inspect.Parameter | None:
    """What ``fit()`` takes besides the rows, in the second place, whatever it calls it."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [each for each in inspect.signature(estimator.fit).parameters.values() if each.kind in places]
    return taken[1] if len(taken) > 1 else None


def usual_score(estimator: Any) -> str | None:
    """What an estimator's own score is called. None if scikit-learn cannot tell, because it is neither a classifier nor a regressor, or has no tags.

    Example:
        >>> from sklearn.cluster import KMeans
        >>> from sklearn.linear_model import LinearRegression, LogisticRegression
        >>> [usual_score(each) for each in (LogisticRegression(), LinearRegression(), KMeans())]
        ['accuracy', 'r2', None]
    """
    from sklearn.base import is_classifier, is_regressor

    if not _has_tags(estimator):
        return None
    return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else None


def _has_tags(estimator: Any) -> bool:
    return hasattr(estimator, "__sklearn_tags__")


def scorers_by_name(scoring: Any) -> Any:
    """A list of scorers as a dict, by the names of their metrics. Anything else is given back as it is.

    Raises:
        ValueError: a scorer has no name, or two have the same.

    Example:
        >>> def profit(estimator, rows, labels):
        ...     return 1.0
        >>> list(scorers_by_name(["accuracy", profit]))
        ['accuracy', 'profit']
    """
    if not isinstance(scoring, (list, tuple, set)):
        return scoring
    named: dict[str, Any] = {}
    for each in scoring:
        name = each if isinstance(each, str) else getattr(each, "__name__", None)
        if name is None:
            raise ValueError(
                f"scoring contains {kind_of(each)}, which has no name for its metric. Pass a dict of names and functions, e.g. "
                "scoring={'profit': ...}"
            )
        if name in named:
            raise ValueError(
                f"scoring has {name!r} twice, and their metrics would have one name. Pass a dict of names and functions, e.g. "
                "scoring={'profit': ...}"
            )
        named[name] = each
    return named


def require_scoring(scoring: Any) -> None:
    """Raise an error if there is no scorer with a name, if something is neither a name nor a function, or if two have one name."""
    if scoring is None or callable(scoring):
        return
    named = _scorers(scoring)
    if not named:
        raise ValueError(
            "scoring is empty: leave it out for the estimator's own score, or name a scorer, e.g. 'accuracy'"
        )
    known: list[str] | None = None
    for each in named:
        if callable(each):
            continue
        if not isinstance(each, str):
            raise InvalidArgumentError(
                f"scoring contains {kind_of(each)}: pass names of scorers, or functions of estimator, rows and labels"
            )
        if known is None:
            from sklearn.metrics import get_scorer_names

            known = get_scorer_names()
        if each not in known:
            raise ValueError(f"scoring: scikit-learn has no scorer {each!r}. It has {', '.join(known)}")
    scorers_by_name(scoring)


def _scorers(scoring: Any) -> list[Any]:
    """The scorers that an argument names or contains."""
    if isinstance(scoring, Mapping):
        return list(scoring.values())
    return list(scoring) if isinstance(scoring, (list, tuple, set)) else [scoring]


def require_scorable(datasets: Mapping[str, Any], estimator: Any, label: str | None, scoring: Any, cv: Any) -> None:
    """Raise a ValueError if there are datasets or folds to score, but nothing that could score them, perhaps for lack of labels."""
    others = [name for name in datasets if name != "train"]
    if not others and cv is None:
        return
    if scoring is None and not callable(getattr(estimator, "score", None)):
        why = f"datasets has {', '.join(map(repr, others))}" if others else f"cv is {cv!r}"
        raise ValueError(
            f"{why}, but {type(estimator).__name__} has no score() to score it with. Leave it out, or pass scoring, a function of "
            "estimator, rows and labels"
        )
    if label is None and (named := [each for each in _scorers(scoring) if isinstance(each, str)]):
        raise ValueError(
            f"scoring names {named[0]!r}, which compares predictions with labels, and there is no label_column. Pass label_column, or "
            "functions of estimator, rows and labels as scoring"
        )


def require_classes_in_frame(train: Any, estimator: Any, label: str) -> None:
    """Raise a DataError if a DataFrame has labels that are no classes, and the estimator needs these."""
    if type(train).__module__.partition(".")[0] == "pandas":
        at = [str(column) for column in train.columns].index(label)  # names become text where Ray reads them
        require_classes(train.iloc[:, at].dropna(), estimator, label, "the dataset 'train'")


def require_classes(labels: Any, estimator: Any, label: str, where: str) -> None:
    """Raise a DataError if labels are continuous, and the estimator needs classes.

    Args:
        labels: The labels, none of them missing.
        estimator: What they are for.
        label: Their column.
        where: Their dataset.
    """
    if labels.dtype.kind != "f" or usual_score(estimator) != "accuracy":
        return
    values = labels.to_numpy("float64")  # columns of Arrow's have no remainders
    fractions = values[values % 1 != 0]
    if len(fractions):
        raise DataError(
            f"{type(estimator).__name__} is a classifier, but the label {label!r} of {where} has continuous values, e.g. "
            f"{fractions[0]}. Use a regressor, or make classes of them with a preprocessor"
        )


def one_process(given: Any) -> ScalingConfig:
    """A scaling config for one process: what Ray's guides give the trainer is what that process gets.

    Raises:
        ValueError: it asks for several workers.

    Example:
        >>> one_process({"trainer_resources": {"CPU": 4}}).worker_resources
        {'CPU': 4.0}
    """
    config = TrainerSettings.checked(scaling_config=given).scaling_config
    if config.num_workers != 1:
        raise ValueError(
            f"num_workers is {config.num_workers}, but SklearnTrainer trains in one process. Leave it out, and give that process more "
            f"cores: {_CORES}"
        )
    if not config.trainer_resources:
        return config
    if config.resources_per_worker:
        raise ValueError(
            "scaling_config has trainer_resources and resources_per_worker, which are the same for a SklearnTrainer: it trains in one "
            "process. Pass one of them"
        )
    resources = config.trainer_resources
    return ScalingConfig(
        **{
            **{name: getattr(config, name) for name in config.model_fields_set},
            "trainer_resources": None,
            "resources_per_worker": resources,
            "use_gpu": bool(resources.get("GPU")) or config.use_gpu,
        }
    )


def require_cv(cv: Any, estimator: Any) -> None:
    """Raise an InvalidArgumentError for what says nothing about folds, or if scikit-learn does not cross-validate such an estimator."""
    is_number = isinstance(cv, int) and not isinstance(cv, bool)
    if is_number and cv < 2:
        raise InvalidArgumentError(f"cv is {cv}: pass 2 folds or more, or leave it out for no cross-validation")
    has_splits = callable(getattr(cv, "split", None)) and not isinstance(cv, (str, bytes))
    if cv is not None and not _has_tags(estimator):
        raise InvalidArgumentError(
            f"scikit-learn cannot cross-validate {type(estimator).__name__}, because it has no tags that tell what it is for. Derive it from "
            "sklearn.base.BaseEstimator, or leave cv out"
        )
    if cv is None or is_number or has_splits or isinstance(cv, (list, tuple)):
        return
    raise InvalidArgumentError(
        f"cv is {kind_of(cv)}: pass a number of folds, one of sklearn.model_selection's splitters, or a list of pairs of "
        "indices"
    )


def whole_datasets(given: Any) -> DataConfig:
    """A data config that splits nothing: whole datasets keep the order of their rows, which many estimators depend on."""
    config = TrainerSettings.checked(dataset_config=given).dataset_config
    return config if config.is_custom else config.model_copy(update={"datasets_to_split": []})
