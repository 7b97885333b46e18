"""The training function of a LightGBMTrainer that is given parameters. It runs in every worker."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.arguments import given_params
from trainlib._boosting.columns import with_equal_columns
from trainlib._boosting.early_stopping import EarlyStopping, Score
from trainlib._boosting.exchange import exchange
from trainlib._boosting.rounds import Rounds, threads
from trainlib._boosting.table import LabelledTable, read_tables
from trainlib.checkpoint import Checkpoint
from trainlib.lightgbm._bins import OF_COMMON_BINS, common_bins
from trainlib.lightgbm._checkpoint import LightGBMCheckpoint
from trainlib.lightgbm._config import get_network_params
from trainlib.lightgbm._library import LIBRARY
from trainlib.lightgbm._metrics import MeanMetrics
from trainlib.lightgbm._objectives import require_share
from trainlib.lightgbm._params import canonical, is_forest
from trainlib.lightgbm._start import add_to_first_tree, common_start

if TYPE_CHECKING:
    import lightgbm

__all__ = ["boost_trees"]

_MOST_BINS_BY_ROW = 2**15
"""Each takes 16 bytes in a histogram: 512 KiB."""


def boost_trees(config: dict[str, Any]) -> dict[str, float]:
    """Train on this worker's share of the rows, together with the other workers.

    Returns:
        How many seconds it took until the first rows came, to read them all, and to train, which is where LightGBM builds its Datasets.
    """
    import lightgbm

    LIBRARY.require_known_here(config["params"])  # where the package may be another version than the trainer's
    params = {"verbosity": -1, "num_threads": threads(), **canonical(given_params(config["params"]))}
    in_params = params.pop("early_stopping_round", None)  # LightGBM would judge by each rank's own rows
    patience = config.get("early_stopping_rounds") or in_params
    stopping = EarlyStopping(patience, params.get("early_stopping_min_delta", 0.0)) if patience else None
    checkpoint = _as_lightgbm(session.get_checkpoint())
    starts_from = checkpoint.get_model() if checkpoint is not None else None
    done = checkpoint.get_rounds() if checkpoint is not None else 0
    rounds = Rounds(config["num_boost_round"], done, stopping)
    if not rounds.left:
        return {}
    again = 0
    if is_forest(params):
        # LightGBM cannot add to one: a retry trains the first rounds again, which it has reported already.
        again, starts_from = done, None
    begun = time.perf_counter()
    tables, given = read_tables(config, LIBRARY, categories=False), config.get("dmatrix_params") or {}
    where = f"the labels of the dataset 'train' on rank {session.get_world_rank()}"
    require_share(params, tables["train"].labels, where, workers=session.get_world_size())
    read = time.perf_counter()
    waited = sum(table.waited_s for table in tables.values())
    tables = with_equal_columns(tables, exchange)
    params = {**histogram_layout(params, tables["train"].features.num_columns), **params}
    reference = start = None
    if session.get_world_size() > 1:
        params |= OF_COMMON_BINS
        reference = common_bins(
            tables["train"].features, session.get_world_rank(), params, given.get("train", {}), exchange
        )
        if starts_from is None:
            start = common_start(params, tables["train"], exchange)
    params = {**get_network_params(), **params}
    datasets = _datasets(tables, params, given, reference, goes_on=starts_from is not None, start=start)
    means = MeanMetrics(tables)

    def report(env: Any) -> None:
        if env.iteration < again:
            return
        if env.iteration == 0 and start is not None:
            add_to_first_tree(env.model, start)
        metrics = means.over_ranks(env.evaluation_result_list)
        scores = judged(env.evaluation_result_list, metrics, only_first=bool(params.get("first_metric_only")))
        is_last = rounds.end_round(scores, trees=env.model.current_iteration())
        kept = rounds.done
        if is_last and stopping is not None:
            # With which LightGBM's own early stopping lets a model end. It counts trees, of which a round may have none.
            env.model.best_iteration, kept = rounds.best_trees, stopping.best_round
        rounds.report(metrics, lambda: LightGBMCheckpoint.from_model(env.model, rounds=kept))
        if is_last and stopping is not None:
            raise lightgbm.callback.EarlyStopException(stopping.best_round - 1, env.evaluation_result_list)

    model = lightgbm.train(
        params,
        datasets["train"],
        num_boost_round=again + rounds.left,
        valid_sets=list(datasets.values()),
        valid_names=list(datasets),
        init_model=starts_from,
        callbacks=[report],
    )
    model.free_network()
    return {"wait_s": waited, "read_s": read - begun - waited, "train_s": time.perf_counter() - read}


def judged(results: Sequence[Any], metrics: Mapping[str, float], *, only_first: bool) -> list[Score]:
    """What early stopping judges by, as LightGBM's own does: all metrics of all datasets but ``train``, or only the first metric.

    Example:
        >>> results = [("train", "l2", 0.1, False), ("valid", "l2", 0.2, False), ("valid", "auc", 0.9, True)]
        >>> [score.name for score in judged(results, {"valid-l2": 0.3, "valid-auc": 0.8}, only_first=False)]
        ['valid-l2', 'valid-auc']
    """
    first = results[0][1] if results else None
    return [
        Score(f"{dataset}-{metric}", metrics[f"{dataset}-{metric}"], bool(higher_is_better))
        for dataset, metric, _, higher_is_better, *_ in results
        if dataset != "train" and (metric == first or not only_first)
    ]


def histogram_layout(params: dict[str, Any], columns: int) -> dict[str, Any]:
    """How LightGBM builds histograms, where nobody says so: row by row, if the histograms of all columns fit into a core's cache.

    By itself it times both ways once, on all rows, and may choose otherwise the next time, or on another worker. Where it chose
    columns, a training by rows took a tenth less.

    Example:
        >>> histogram_layout({}, 30), histogram_layout({"force_col_wise": True}, 30), histogram_layout({}, 5000)
        ({'force_row_wise': True}, {}, {})
    """
    is_given = any(name in params for name in ("force_row_wise", "force_col_wise", "device_type"))
    bins = params.get("max_bin", 255)
    fits = isinstance(bins, int) and columns * bins <= _MOST_BINS_BY_ROW  # what is no number, LightGBM refuses
    return {"force_row_wise": True} if fits and not is_given else {}


def _datasets(
    tables: dict[str, LabelledTable],
    params: dict[str, Any],
    given: dict[str, dict[str, Any]],
    reference: lightgbm.Dataset | None = None,
    *,
    goes_on: bool = False,
    start: float | None = None,
) -> dict[str, lightgbm.Dataset]:
    """A Dataset for each table.

    Args:
        tables: This rank's rows, by dataset, ``train`` first.
        params: LightGBM's parameters.
        given: The arguments of the Datasets, by dataset.
        reference: What has the bins of ``train``, and so of all. Default: LightGBM finds them.
        goes_on: Whether the training goes on from a model.
        start: The score that all rows start from, besides their own. Default: LightGBM finds one.
    """
    import lightgbm
    import numpy as np

    made: dict[str, lightgbm.Dataset] = {}
    for name, table in tables.items():
        more = {**given.get(name, {}), **table.columns}
        if "qid" in more:
            more["group"] = np.bincount(more.pop("qid"))
        if start is not None:
            more["init_score"] = more.get("init_score", np.zeros(table.rows)) + start
        kind: Any = lightgbm.Dataset
        if goes_on and "init_score" in more:
            from trainlib.lightgbm._scores import DatasetWithScores

            kind, more["scores"] = DatasetWithScores, more.pop("init_score")
        made[name] = kind(table.features, table.labels, reference=made.get("train", reference), params=params, **more)
    return made


def _as_lightgbm(checkpoint: Checkpoint | None) -> LightGBMCheckpoint | None:
    if checkpoint is None or isinstance(checkpoint, LightGBMCheckpoint):
        return checkpoint
    return LightGBMCheckpoint.from_checkpoint(checkpoint)
