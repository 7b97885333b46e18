"""How the arguments of a LightGBMTrainer are checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlib._boosting.labels import Needs
from trainlib._boosting.library import Library
from trainlib.errors import InvalidArgumentError
from trainlib.lightgbm import _objectives as objectives
from trainlib.lightgbm import _params as own
from trainlib.lightgbm._start import starts_from_transformed_mean
from trainlib.lightgbm._unknown import require_known

__all__ = ["LIBRARY"]

_FUNCTION = "Pass a training function that calls lightgbm.train with it"


def _require_possible(params: dict[str, Any], patience: int | None) -> None:
    own.require_free(params)
    if patience is not None and own.canonical(params).get("boosting") == "dart":
        raise InvalidArgumentError(
            "LightGBM has no early stopping with boosting='dart'. Leave early_stopping_rounds out"
        )
    objectives.require_possible(params)


def _patience_in(params: dict[str, Any]) -> Any:
    return own.canonical(params).get("early_stopping_round") or None  # 0 is none


def _alone_with(params: dict[str, Any]) -> str | None:
    if own.is_on(params, "linear_tree", False):
        return "With linear_tree=True, each worker would fit the leaves to its own rows. Leave it out."
    if own.is_forest(params) and starts_from_transformed_mean(params):
        return (
            f"With boosting='rf' and the objective {objectives.objective_of(params)}, every tree starts from the mean label, and each worker "
            "would take that of its own rows. Use another boosting or objective."
        )
    return None


def _why_not_resumed(params: dict[str, Any]) -> str | None:
    return "LightGBM cannot add trees to a random forest (boosting='rf')." if own.is_forest(params) else None


def _require_consistent(params: dict[str, Any], given: Mapping[str, Mapping[str, Any]]) -> None:
    for name, arguments in given.items():
        if "init_score" in arguments and objectives.need_of(params) == Needs.CLASSES:
            raise InvalidArgumentError(
                f"dmatrix_params[{name!r}] has an init_score, which is one column, but the objective {objectives.objective_of(params)} "
                "has a score for each class. Leave it out"
            )


LIBRARY = Library(
    package="lightgbm",
    file="lib_lightgbm",
    matrix="lightgbm.Dataset",
    columns=("weight", "init_score", "qid"),
    arguments=("categorical_feature", "free_raw_data", "position"),
    not_in_names='",:[]{}',
    taken={
        "data": "Pass datasets={...}",
        "label": "Pass label_column=...",
        "reference": "Leave it out",
        "params": "Pass params={...}",
        "feature_name": "Name the columns of the datasets",
        "group": "Name the column with the queries as 'qid'",
    },
    instead={
        "valid_sets": "Pass them in datasets={'train': ..., 'valid': ...}: all are evaluated after each round",
        "valid_names": "Pass datasets={'train': ..., 'valid': ...}: their names are those of the metrics",
        "evals_result": "Result.metrics_dataframe has the metrics of each round",
        "verbose_eval": "Every round is reported. Leave it out",
        "init_model": "Pass resume_from_checkpoint=LightGBMCheckpoint.from_model(booster)",
        "callbacks": "Pass RunConfig(callbacks=[...]) for callbacks of trainlib's, or a training function that calls lightgbm.train",
        "feval": _FUNCTION,
        "fobj": _FUNCTION,
        "learning_rates": _FUNCTION,
        "keep_training_booster": _FUNCTION,
        "feature_name": "Name the columns of the datasets",
        "categorical_feature": "Pass dmatrix_params={'train': {'categorical_feature': [...]}}",
    },
    require_possible=_require_possible,
    require_known=require_known,
    objective_in=lambda params: own.canonical(params).get("objective"),
    classes_in=objectives.classes_of,
    need_of=objectives.need_of,
    ranks=objectives.ranks,
    patience_in=_patience_in,
    alone_with=_alone_with,
    why_not_resumed=_why_not_resumed,
    require_consistent=_require_consistent,
)
