"""How the arguments of an XGBoostTrainer are checked before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlib._boosting.library import Library
from trainlib.errors import InvalidArgumentError
from trainlib.xgboost import _objectives as objectives
from trainlib.xgboost._bins import max_bin_of
from trainlib.xgboost._unknown import require_known

__all__ = ["LIBRARY"]

_FUNCTION = "Pass a training function that calls xgboost.train with it"
_ROUNDS = "Pass num_boost_round=... to XGBoostTrainer"
_INSTEAD = {
    "num_boost_round": _ROUNDS,
    "num_round": _ROUNDS,
    "n_estimators": _ROUNDS,
    "early_stopping_rounds": "Pass early_stopping_rounds=... to XGBoostTrainer",
    "process_type": _FUNCTION,
}
"""Parameters that say what the trainer has to say, or that make no new trees."""


def _require_possible(params: dict[str, Any], patience: int | None) -> None:
    for name in params:
        if name in _INSTEAD and params[name] != "default":
            raise InvalidArgumentError(f"params has {name!r}, which XGBoostTrainer cannot take. {_INSTEAD[name]}")
    objectives.require_possible(params)


def _require_consistent(params: dict[str, Any], given: Mapping[str, Mapping[str, Any]]) -> None:
    max_bin_of(params, given)


def _alone_with(params: dict[str, Any]) -> str | None:
    if params.get("booster") == "gblinear":
        return "With booster='gblinear', each worker would train a model of its own rows. Use another booster."
    if params.get("tree_method") == "exact":
        return "XGBoost supports tree_method='exact' in a single process only. Use 'hist' or 'approx'."
    if "grow_colmaker" in str(params.get("updater")).split(","):
        return "XGBoost supports the updater 'grow_colmaker' in a single process only. Use 'grow_quantile_histmaker' or 'grow_histmaker'."
    if params.get("objective") == "survival:cox":
        return (
            "The objective 'survival:cox' compares rows with each other, and each worker would compare its own rows. Use "
            "'survival:aft'."
        )
    metrics = params.get("eval_metric")
    if "cox-nloglik" in (metrics if isinstance(metrics, (list, tuple)) else [metrics]):
        return "The metric 'cox-nloglik' compares rows with each other, and each worker would compare its own rows. Use another metric."
    return None


LIBRARY = Library(
    package="xgboost",
    file="libxgboost",
    matrix="xgboost.QuantileDMatrix",
    columns=("weight", "base_margin", "label_lower_bound", "label_upper_bound", "qid"),
    arguments=(
        "missing",
        "silent",
        "feature_types",
        "nthread",
        "max_bin",
        "feature_weights",
        "enable_categorical",
        "max_quantile_batches",
    ),
    not_in_names="[]<",
    taken={
        "data": "Pass datasets={...}",
        "label": "Pass label_column=...",
        "feature_names": "Name the columns of the datasets",
        "ref": "Leave it out",
        "group": "Name the column with the queries as 'qid'",
        "data_split_mode": "Each worker has its share of the rows. Leave it out",
    },
    instead={
        "evals": "Pass them in datasets={'train': ..., 'valid': ...}: all are evaluated after each round",
        "evals_result": "Result.metrics_dataframe has the metrics of each round",
        "verbose_eval": "Every round is reported. Leave it out",
        "xgb_model": "Pass resume_from_checkpoint=XGBoostCheckpoint.from_model(booster)",
        "callbacks": "Pass RunConfig(callbacks=[...]) for callbacks of trainlib's, or a training function that calls xgboost.train",
        "obj": _FUNCTION,
        "feval": _FUNCTION,
        "custom_metric": _FUNCTION,
        "maximize": "Early stopping knows which metrics are better when they are higher. Leave it out",
        "ray_params": "Pass scaling_config=ScalingConfig(num_workers=...)",
    },
    require_possible=_require_possible,
    require_known=require_known,
    objective_in=lambda params: params.get("objective"),
    classes_in=lambda params: params.get("num_class"),
    need_of=objectives.need_of,
    ranks=lambda params: str(params.get("objective")).startswith("rank:"),
    alone_with=_alone_with,
    require_consistent=_require_consistent,
)
