"""The training function of an XGBoostTrainer that is given parameters. It runs in every worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.labels import require_fit
from trainlib._boosting.rounds import Rounds, threads
from trainlib._boosting.table import LabelledTable, read_table
from trainlib.checkpoint import Checkpoint
from trainlib.xgboost import _objectives as objectives
from trainlib.xgboost._checkpoint import XGBoostCheckpoint

if TYPE_CHECKING:
    import xgboost

__all__ = ["boost_trees"]

_COLUMNS = ("weight", "base_margin", "label_lower_bound", "label_upper_bound", "qid")
"""Arguments of a matrix that may name a column."""


def boost_trees(config: dict[str, Any]) -> dict[str, float]:
    """Train on this worker's share of the rows, together with the other workers.

    Returns:
        How many seconds it took until the first rows came, to read them all, to build the matrices, and to train.
    """
    import xgboost

    from trainlib.xgboost._rounds import ReportRounds
    from trainlib.xgboost._unknown import require_known

    params = {"nthread": threads(), **config["params"]}
    starts_from = _model_of(session.get_checkpoint())
    rounds = Rounds(config["num_boost_round"], starts_from.num_boosted_rounds() if starts_from is not None else 0)
    if not rounds.left:
        return {}
    begun = time.perf_counter()
    tables = {name: _read(name, config) for name in _names()}
    read = time.perf_counter()
    waited = sum(table.waited_s for table in tables.values())
    matrices = _matrices(tables, params, config.get("dmatrix_params") or {})
    require_known(params, matrices["train"])
    built = time.perf_counter()
    xgboost.train(
        params,
        matrices["train"],
        num_boost_round=rounds.left,
        evals=[(matrix, name) for name, matrix in matrices.items()],
        xgb_model=starts_from,
        callbacks=[ReportRounds(rounds)],
        verbose_eval=False,
    )
    return {
        "wait_s": waited,
        "read_s": read - begun - waited,
        "build_s": built - read,
        "train_s": time.perf_counter() - built,
    }


def _names() -> list[str]:
    """The datasets, ``train`` first: the matrices of the others are cut as its is."""
    names = session.current("get_dataset_shard").dataset_names
    return ["train", *(name for name in names if name != "train")]


def _read(name: str, config: dict[str, Any]) -> LabelledTable:
    given = (config.get("dmatrix_params") or {}).get(name, {})
    others = {what: given[what] for what in _COLUMNS if isinstance(given.get(what), str)}
    table = read_table(name, config["label_column"], others)
    params = config["params"]
    where = f"the label {config['label_column']!r} of the dataset {name!r}"
    require_fit(table.labels, objectives.need_of(params), str(params.get("objective")), params.get("num_class"), where)
    return table


def _matrices(
    tables: dict[str, LabelledTable], params: dict[str, Any], given: dict[str, dict[str, Any]]
) -> dict[str, xgboost.DMatrix]:
    """A matrix for each dataset. With histograms, values are cut into bins at once, and never copied as they are."""
    import xgboost

    in_bins = params.get("tree_method", "auto") in ("auto", "hist") and params.get("booster", "gbtree") != "gblinear"
    made: dict[str, xgboost.DMatrix] = {}
    for name, table in tables.items():
        more = {"nthread": params["nthread"], "enable_categorical": True, **given.get(name, {}), **table.columns}
        if in_bins and name == "train" and "max_bin" in params:
            more.setdefault("max_bin", params["max_bin"])
        if in_bins and name != "train":
            more["ref"] = made["train"]
        kind = xgboost.QuantileDMatrix if in_bins else xgboost.DMatrix
        made[name] = kind(table.features, table.labels, **more)
    return made


def _model_of(checkpoint: Checkpoint | None) -> xgboost.Booster | None:
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, XGBoostCheckpoint):
        checkpoint = XGBoostCheckpoint.from_checkpoint(checkpoint)
    return checkpoint.get_model()
