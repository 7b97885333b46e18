"""The training function of an XGBoostTrainer that is given parameters. It runs in every worker."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.arguments import given_params
from trainlib._boosting.categories import categories_in, encoded, united
from trainlib._boosting.columns import with_equal_columns
from trainlib._boosting.early_stopping import EarlyStopping
from trainlib._boosting.exchange import ExchangeBytes, exchange, exchange_json
from trainlib._boosting.rounds import Rounds, threads
from trainlib._boosting.table import LabelledTable, read_tables
from trainlib.checkpoint import Checkpoint
from trainlib.errors import DataError
from trainlib.xgboost._bins import max_bin_of
from trainlib.xgboost._checkpoint import XGBoostCheckpoint
from trainlib.xgboost._library import LIBRARY
from trainlib.xgboost._served import categories_of

if TYPE_CHECKING:
    import numpy as np
    import xgboost

__all__ = ["boost_trees"]

_OF_BINS = ("max_bin", "max_quantile_batches")
"""Arguments that only a matrix of bins has."""


def boost_trees(config: dict[str, Any]) -> dict[str, float]:
    """Train on this worker's share of the rows, together with the other workers.

    Returns:
        How many seconds it took until the first rows came, to read them all, to build the matrices, and to train.
    """
    import xgboost

    from trainlib.xgboost._rounds import ReportRounds

    LIBRARY.require_known_here(config["params"])  # where the package may be another version than the trainer's
    params = given_params(config["params"])
    params.setdefault("nthread", params.pop("n_jobs", threads()))
    given = config.get("dmatrix_params") or {}
    if (bins := max_bin_of(params, given)) is not None:
        params["max_bin"] = bins
    patience = config.get("early_stopping_rounds")
    starts_from = _model_of(session.get_checkpoint())
    done = starts_from.num_boosted_rounds() if starts_from is not None else 0
    rounds = Rounds(config["num_boost_round"], done, EarlyStopping(patience) if patience else None)
    if not rounds.left:
        return {}
    begun = time.perf_counter()
    tables = read_tables(config, LIBRARY)
    read = time.perf_counter()
    waited = sum(table.waited_s for table in tables.values())
    tables = _with_equal_categories(with_equal_columns(tables, exchange), starts_from, exchange)
    matrices = _matrices(tables, params, given)
    built = time.perf_counter()
    # XGBoost writes metrics into one line, and finds no dataset again in it whose name has a dash, a space or a colon.
    names = {f"d{place}": name for place, name in enumerate(matrices)}
    xgboost.train(
        params,
        matrices["train"],
        num_boost_round=rounds.left,
        evals=[(matrices[name], short) for short, name in names.items()],
        xgb_model=starts_from,
        callbacks=[ReportRounds(rounds, given.get("train", {}).get("missing"), names=names)],
        verbose_eval=False,
    )
    return {
        "wait_s": waited,
        "read_s": read - begun - waited,
        "build_s": built - read,
        "train_s": time.perf_counter() - built,
    }


def _with_equal_categories(
    tables: dict[str, LabelledTable], starts_from: xgboost.Booster | None, exchange: ExchangeBytes
) -> dict[str, LabelledTable]:
    """The tables with one code for each category, on all ranks and in all datasets. XGBoost compares the codes of ranks as they are.

    Args:
        tables: This rank's rows, by dataset.
        starts_from: The model that the training goes on from. Its categories keep their codes.
        exchange: Brings the ranks' categories together.

    Raises:
        DataError: there are categories that this model does not know.
    """
    everyones = united(exchange_json(categories_in(table.features for table in tables.values()), exchange))
    kept = categories_of(starts_from) if starts_from is not None else {}
    for name, known in ((name, values.tolist()) for name, values in kept.items() if values is not None):
        if new := [each for each in everyones.get(name, ()) if each not in known]:
            raise DataError(
                f"the column {name!r} has {new[0]!r}, which the model of the checkpoint does not know. XGBoost cannot add categories to "
                "a model: train a new one, or drop those rows"
            )
        everyones[name] = known
    return {name: replace(table, features=encoded(table.features, everyones)) for name, table in tables.items()}


def _matrices(
    tables: dict[str, LabelledTable], params: dict[str, Any], given: dict[str, dict[str, Any]]
) -> dict[str, xgboost.DMatrix]:
    """A matrix for each dataset. With histograms, values are cut into bins at once, and never copied as they are."""
    import xgboost

    in_bins = _takes_bins(params)
    made: dict[str, xgboost.DMatrix] = {}
    for name, table in tables.items():
        more = {"nthread": params["nthread"], "enable_categorical": True, **given.get(name, {}), **_columns_of(table)}
        if not in_bins:
            more = {what: value for what, value in more.items() if what not in _OF_BINS}
        elif "max_bin" in params:
            more["max_bin"] = params["max_bin"]
        if in_bins and name != "train":
            more["ref"] = made["train"]
        kind = xgboost.QuantileDMatrix if in_bins else xgboost.DMatrix
        made[name] = kind(table.features, table.labels, **more)
    return made


def _takes_bins(params: Mapping[str, Any]) -> bool:
    if params.get("updater"):  # in place of which XGBoost ignores the tree_method
        return "grow_quantile_histmaker" in str(params["updater"]).split(",")
    return params.get("tree_method", "auto") in ("auto", "hist") and params.get("booster", "gbtree") != "gblinear"


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
