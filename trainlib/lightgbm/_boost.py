"""The training function of a LightGBMTrainer that is given parameters. It runs in every worker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.labels import require_fit
from trainlib._boosting.rounds import Rounds, threads
from trainlib._boosting.table import LabelledTable, read_table
from trainlib.checkpoint import Checkpoint
from trainlib.lightgbm import _objectives as objectives
from trainlib.lightgbm._checkpoint import LightGBMCheckpoint
from trainlib.lightgbm._config import get_network_params
from trainlib.lightgbm._metrics import MeanMetrics
from trainlib.lightgbm._unknown import require_known

if TYPE_CHECKING:
    import lightgbm

__all__ = ["boost_trees"]

_COLUMNS = ("weight", "init_score")
"""Arguments of a Dataset that may name a column."""
_MOST_BINS_BY_ROW = 2**15
"""Each takes 16 bytes in a histogram: 512 KiB."""
_THREADS = ("num_threads", "num_thread", "nthread", "nthreads", "n_jobs")


def boost_trees(config: dict[str, Any]) -> dict[str, float]:
    """Train on this worker's share of the rows, together with the other workers.

    Returns:
        How many seconds it took until the first rows came, to read them all, and to train, which is where LightGBM builds its Datasets.
    """
    import lightgbm

    params = {"verbosity": -1, **config["params"]}
    require_known(params)
    if not any(name in params for name in _THREADS):
        params["num_threads"] = threads()
    starts_from = _model_of(session.get_checkpoint())
    rounds = Rounds(config["num_boost_round"], starts_from.current_iteration() if starts_from is not None else 0)
    if not rounds.left:
        return {}
    begun = time.perf_counter()
    tables = {name: _read(name, config) for name in _names()}
    read = time.perf_counter()
    waited = sum(table.waited_s for table in tables.values())
    params = {**get_network_params(), **histogram_layout(params, tables["train"].features.num_columns), **params}
    datasets = _datasets(tables, params, config.get("dmatrix_params") or {})
    means = MeanMetrics(tables)

    def report(env: Any) -> None:
        metrics = means.over_ranks(env.evaluation_result_list)
        rounds.report(metrics, lambda: LightGBMCheckpoint.from_model(env.model))

    model = lightgbm.train(
        params,
        datasets["train"],
        num_boost_round=rounds.left,
        valid_sets=list(datasets.values()),
        valid_names=list(datasets),
        init_model=starts_from,
        callbacks=[report],
    )
    model.free_network()
    return {"wait_s": waited, "read_s": read - begun - waited, "train_s": time.perf_counter() - read}


def histogram_layout(params: dict[str, Any], columns: int) -> dict[str, Any]:
    """How LightGBM builds histograms, where nobody says so: row by row, if the histograms of all columns fit into a core's cache.

    By itself it times both ways once, on all rows, and may choose otherwise the next time, or on another worker. Where it chose
    columns, a training by rows took a tenth less.

    Example:
        >>> histogram_layout({}, 30), histogram_layout({"force_col_wise": True}, 30), histogram_layout({}, 5000)
        ({'force_row_wise': True}, {}, {})
    """
    is_given = any(name in params for name in ("force_row_wise", "force_col_wise", "device_type", "device"))
    bins = params.get("max_bin", 255)
    fits = isinstance(bins, int) and columns * bins <= _MOST_BINS_BY_ROW  # what is no number, LightGBM refuses
    return {"force_row_wise": True} if fits and not is_given else {}


def _names() -> list[str]:
    """The datasets, ``train`` first: the others are cut into bins as it is."""
    names = session.current("get_dataset_shard").dataset_names
    return ["train", *(name for name in names if name != "train")]


def _read(name: str, config: dict[str, Any]) -> LabelledTable:
    given = (config.get("dmatrix_params") or {}).get(name, {})
    others = {what: given[what] for what in _COLUMNS if isinstance(given.get(what), str)}
    table = read_table(name, config["label_column"], others, categories=False)
    params = config["params"]
    where = f"the label {config['label_column']!r} of the dataset {name!r}"
    require_fit(
        table.labels, objectives.need_of(params), objectives.objective_of(params), objectives.classes_of(params), where
    )
    return table


def _datasets(
    tables: dict[str, LabelledTable], params: dict[str, Any], given: dict[str, dict[str, Any]]
) -> dict[str, lightgbm.Dataset]:
    import lightgbm

    made: dict[str, lightgbm.Dataset] = {}
    for name, table in tables.items():
        more = {**given.get(name, {}), **table.columns}
        made[name] = lightgbm.Dataset(table.features, table.labels, reference=made.get("train"), params=params, **more)
    return made


def _model_of(checkpoint: Checkpoint | None) -> lightgbm.Booster | None:
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, LightGBMCheckpoint):
        checkpoint = LightGBMCheckpoint.from_checkpoint(checkpoint)
    return checkpoint.get_model()
