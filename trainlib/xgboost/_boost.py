"""The training function of an XGBoostTrainer that is given parameters. It runs in every worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.early_stopping import EarlyStopping
from trainlib._boosting.labels import require_fit
from trainlib._boosting.rounds import Rounds, threads
from trainlib._boosting.table import LabelledTable, read_tables
from trainlib.checkpoint import Checkpoint
from trainlib.errors import DataError
from trainlib.xgboost import _objectives as objectives
from trainlib.xgboost._checkpoint import XGBoostCheckpoint
from trainlib.xgboost._library import LIBRARY

if TYPE_CHECKING:
    import numpy as np
    import xgboost

__all__ = ["boost_trees"]


def boost_trees(config: dict[str, Any]) -> dict[str, float]:
    """Train on this worker's share of the rows, together with the other workers.

    Returns:
        How many seconds it took until the first rows came, to read them all, to build the matrices, and to train.
    """
    import xgboost

    from trainlib.xgboost._rounds import ReportRounds

    LIBRARY.require_known_here(config["params"])  # where the package may be another version than the trainer's
    params = dict(config["params"])
    params.setdefault("nthread", params.pop("n_jobs", threads()))
    patience = config.get("early_stopping_rounds")
    starts_from = _model_of(session.get_checkpoint())
    done = starts_from.num_boosted_rounds() if starts_from is not None else 0
    rounds = Rounds(config["num_boost_round"], done, EarlyStopping(patience) if patience else None)
    if not rounds.left:
        return {}
    begun = time.perf_counter()
    tables = _read(config)
    read = time.perf_counter()
    waited = sum(table.waited_s for table in tables.values())
    matrices = _matrices(tables, params, config.get("dmatrix_params") or {})
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


def _read(config: dict[str, Any]) -> dict[str, LabelledTable]:
    params, label = config["params"], config["label_column"]
    tables = read_tables(label, config.get("dmatrix_params") or {}, LIBRARY.columns)
    for name, table in tables.items():
        where, objective = f"the label {label!r} of the dataset {name!r}", str(params.get("objective"))
        require_fit(table.labels, objectives.need_of(params), objective, params.get("num_class"), where)
    return tables


def _matrices(
    tables: dict[str, LabelledTable], params: dict[str, Any], given: dict[str, dict[str, Any]]
) -> dict[str, xgboost.DMatrix]:
    """A matrix for each dataset. With histograms, values are cut into bins at once, and never copied as they are."""
    import xgboost

    in_bins = params.get("tree_method", "auto") in ("auto", "hist") and params.get("booster", "gbtree") != "gblinear"
    made: dict[str, xgboost.DMatrix] = {}
    for name, table in tables.items():
        more = {"nthread": params["nthread"], "enable_categorical": True, **given.get(name, {}), **_columns_of(table)}
        if in_bins and name == "train" and "max_bin" in params:
            more.setdefault("max_bin", params["max_bin"])
        if in_bins and name != "train":
            more["ref"] = made["train"]
        kind = xgboost.QuantileDMatrix if in_bins else xgboost.DMatrix
        made[name] = kind(table.features, table.labels, **more)
    return made


def _columns_of(table: LabelledTable) -> dict[str, np.ndarray]:
    """The columns that are no features, as XGBoost takes them: where there are queries, each of them has one weight."""
    import numpy as np

    columns = dict(table.columns)
    if "qid" in columns and "weight" in columns:
        starts = np.flatnonzero(np.diff(columns["qid"], prepend=-1.0))
        weights = columns["weight"][starts]
        if not np.array_equal(weights[columns["qid"]], columns["weight"]):
            raise DataError(
                f"the weights of the dataset {table.name!r} differ within a query. XGBoost weighs whole queries: give all rows of a "
                "query the same weight"
            )
        columns["weight"] = weights
    return columns


def _model_of(checkpoint: Checkpoint | None) -> xgboost.Booster | None:
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, XGBoostCheckpoint):
        checkpoint = XGBoostCheckpoint.from_checkpoint(checkpoint)
    return checkpoint.get_model()
