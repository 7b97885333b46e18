"""The training function of a SklearnTrainer. It runs in one worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.arguments import require_column
from trainlib._boosting.rounds import threads
from trainlib._serving.arrays import has_arrays, without_arrow
from trainlib.errors import DataError
from trainlib.sklearn._arguments import require_classes, scorers_by_name, usual_score
from trainlib.sklearn._checkpoint import SklearnCheckpoint
from trainlib.sklearn._served import features_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fit_estimator"]

_CPU_PARAMS = ("n_jobs", "thread_count")
"""What estimators call the number of their threads."""
_GROUPS = "cv_groups"
"""A column that is no feature: the groups that cross-validation does not divide."""


def fit_estimator(config: dict[str, Any]) -> None:
    """Fit the estimator, score it, and report both at once."""
    import joblib
    from sklearn.base import clone

    estimator = clone(config["estimator"]).set_params(**(config.get("params") or {}))
    label = config.get("label_column")
    train = _read("train")
    groups = train.pop(_GROUPS) if _GROUPS in train else None
    rows, labels = _split(train, label, "train")
    if label is not None:
        require_classes(labels, estimator, label, "the dataset 'train'")
    cores = threads()
    folds_at_once = _parallelizes_folds(config, estimator)
    if config.get("set_estimator_cpus", True):
        _set_cpus(estimator, 1 if folds_at_once else cores)
    fit_params = config.get("fit_params") or {}
    # In threads: processes of joblib's would outlive a worker that is killed.
    with joblib.parallel_config(backend="threading", n_jobs=None):
        folds: dict[str, Any] = {}
        if config.get("cv") is not None:
            jobs = cores if folds_at_once else 1
            folds = {"cv": _cross_validated(estimator, rows, labels, groups, config, fit_params, jobs)}
            if folds_at_once and config.get("set_estimator_cpus", True):
                _set_cpus(estimator, cores)
        begun = time.perf_counter()
        estimator.fit(rows, labels, **fit_params) if labels is not None else estimator.fit(rows, **fit_params)
        metrics: dict[str, Any] = {"fit_time": time.perf_counter() - begun}
        running = session.current("report")
        for name in running.dataset_names:
            if name != "train":
                metrics = {**_scored(estimator, name, label, scorers_by_name(config.get("scoring"))), **metrics}
    is_kept = running.checkpoint_config.is_due(1, is_last=True)
    session.report({**metrics, **folds}, checkpoint=SklearnCheckpoint.from_estimator(estimator) if is_kept else None)


def _read(name: str) -> pd.DataFrame:
    """A dataset with its rows in their order."""
    import pandas as pd

    shard = session.get_dataset_shard(name)
    assert shard is not None, "the trainer has this dataset"
    shard.get_context().execution_options.preserve_order = True
    read: Any = shard.iter_batches(batch_size=None, batch_format="pandas")  # type: ignore[arg-type]
    parts = [part for part in read if len(part)]
    if not parts:
        raise DataError(f"the dataset {name!r} has no rows")
    return without_arrow(pd.concat(parts, ignore_index=True))


def _split(rows: pd.DataFrame, label: str | None, name: str) -> tuple[Any, Any]:
    """Features and labels."""
    where = f"the dataset {name!r}"
    if label is None:
        _require_none_ignored(rows, where)
        return features_of(rows, None), None
    require_column(label, [str(column) for column in rows.columns], where)
    labels = rows[label]
    if missing := int(labels.isna().sum()):
        raise DataError(
            f"the label {label!r} of {where} is missing in {missing} of its {len(rows)} rows. Fill them in, or drop those rows"
        )
    features = rows.drop(columns=[label])
    if not len(features.columns):
        raise DataError(f"{where} has no columns besides the label. There is nothing to predict it from")
    _require_none_ignored(features, where)
    return features_of(features, None), labels


def _require_none_ignored(features: pd.DataFrame, where: str) -> None:
    """Raise a DataError if there are columns beside a column of arrays, which is all that an estimator would get."""
    arrays = [name for name in features.columns if has_arrays(features[[name]])]
    ignored = [name for name in features.columns if name not in arrays]
    if len(arrays) == 1 and ignored:
        named = ", ".join(map(repr, ignored))
        raise DataError(
            f"{where} has the column {arrays[0]!r} of arrays, which the estimator gets alone: {named[:500]} would be ignored. Drop what "
            "you do not need, or make one column of all with the preprocessor Concatenator(columns=[...], flatten=True)"
        )


def _parallelizes_folds(config: Mapping[str, Any], estimator: Any) -> bool:
    if config.get("cv") is None:
        return False
    wanted = config.get("parallelize_cv")
    return not _cpu_params(estimator) if wanted is None else bool(wanted)


def _cpu_params(estimator: Any) -> list[str]:
    """The parameters, also of what is inside the estimator, that say how many threads there are."""
    return [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] in _CPU_PARAMS]


def _set_cpus(estimator: Any, cores: int) -> None:
    estimator.set_params(**dict.fromkeys(_cpu_params(estimator), cores))


def _cross_validated(
    estimator: Any,
    rows: Any,
    labels: Any,
    groups: Any,
    config: Mapping[str, Any],
    fit_params: dict[str, Any],
    jobs: int,
) -> dict[str, Any]:
    """What scikit-learn measures for each fold, and its mean and deviation over the folds."""
    import numpy as np
    from sklearn.model_selection import cross_validate

    scorers = scorers_by_name(config.get("scoring"))
    found = cross_validate(
        estimator,
        rows,
        labels,
        groups=groups,
        scoring=scorers if labels is not None else _without_labels(scorers),
        cv=config["cv"],
        n_jobs=jobs,
        params=fit_params or None,
        return_train_score=bool(config.get("return_train_score_cv")),
        error_score="raise",
    )
    by_fold = {name: np.asarray(values, dtype=float) for name, values in found.items()}
    return {
        **{f"{name}_mean": float(values.mean()) for name, values in by_fold.items()},
        **{f"{name}_std": float(values.std()) for name, values in by_fold.items()},
        **{name: values.tolist() for name, values in by_fold.items()},
    }


def _without_labels(scorers: Any) -> Any:
    """Scorers for cross-validation that are given None for labels, as on datasets. scikit-learn would call them with two arguments."""
    if callable(scorers):
        return lambda estimator, rows: scorers(estimator, rows, None)
    if isinstance(scorers, Mapping):
        return {name: _without_labels(each) for name, each in scorers.items()}
    return scorers


def _scored(estimator: Any, name: str, label: str | None, scoring: Any) -> dict[str, Any]:
    """The scores on a dataset: under its name as in Ray's guides, and as ``<dataset>-<scorer>``."""
    rows, labels = _split(_read(name).drop(columns=[_GROUPS], errors="ignore"), label, name)
    begun = time.perf_counter()
    scores, is_single = _scores(estimator, rows, labels, scoring)
    taken = time.perf_counter() - begun
    under = {"score" if is_single else scorer: value for scorer, value in scores.items()}
    return {
        **{f"{name}-{scorer}": value for scorer, value in scores.items()},
        name: {**{f"test_{scorer}": value for scorer, value in under.items()}, "score_time": taken},
    }


def _scores(estimator: Any, rows: Any, labels: Any, scoring: Any) -> tuple[dict[str, float], bool]:
    """Scores by the names of their scorers, and whether it is one that is simply called the score."""
    from sklearn.metrics import get_scorer

    if scoring is None:
        return {usual_score(estimator) or "score": float(estimator.score(rows, labels))}, True
    if callable(scoring):
        found = scoring(estimator, rows, labels)
        if isinstance(found, Mapping):
            return {str(name): float(value) for name, value in found.items()}, False
        return {getattr(scoring, "__name__", "score"): float(found)}, True
    named = {scoring: scoring} if isinstance(scoring, str) else scoring
    scores = {
        name: float((each if callable(each) else get_scorer(each))(estimator, rows, labels))
        for name, each in named.items()
    }
    return scores, isinstance(scoring, str)
