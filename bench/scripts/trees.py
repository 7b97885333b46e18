"""The table that boosted trees are trained on, and their settings: the same on both sides.

TRAINLIB_BENCH_ROWS=20000 makes the table smaller, to see whether the scripts work. TRAINLIB_BENCH_ROUNDS=200 trains for longer.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa

from bench.scripts.side import turn

ROWS = int(os.environ.get("TRAINLIB_BENCH_ROWS", "1000000"))
HELD_OUT = 100_000
COLUMNS = 30
ROUNDS = int(os.environ.get("TRAINLIB_BENCH_ROUNDS", "50"))
BLOCKS = 8
XGBOOST = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 6, "eta": 0.1}
LIGHTGBM = {
    "objective": "binary",
    "metric": "binary_logloss",
    "num_leaves": 63,
    "learning_rate": 0.1,
    "verbosity": -1,
}


def table(rows: int, seed: int) -> pa.Table:
    """Numbers, and a label that depends on five of them, not always in the same way.

    Each of the five counts by itself, too. If two counted only as a product, no first split on either would help, and a training
    would find them by chance, sooner or later: LightGBM's AUC in one process then varies by 0.004 with ``data_random_seed`` alone,
    which is twice as much as two workers may differ from it.
    """
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(COLUMNS, rows)).astype("float32")
    score = values[0] + np.maximum(values[1], values[2]) + np.sin(3 * values[3]) + 0.5 * np.abs(values[4]) - 1.0
    label = (score + rng.normal(size=rows) > 0).astype("int8")
    return pa.table({**{f"x{index}": column for index, column in enumerate(values)}, "label": label})


def blocks() -> list[pa.Table]:
    """The table to train on, in pieces of equal size. Each turn has another one, and both sides the same."""
    whole = table(ROWS, seed=turn())
    size = ROWS // BLOCKS
    return [whole.slice(index * size, size) for index in range(BLOCKS)]


def held_out() -> tuple[Any, np.ndarray]:
    """Rows that no model has seen, as a DataFrame, and their labels."""
    rows = table(HELD_OUT, seed=0).to_pandas()
    return rows.drop(columns="label"), rows["label"].to_numpy()


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """The share of pairs of a positive and a negative row that are in the right order."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    positive = int(labels.sum())
    return float((ranks[labels == 1].sum() - positive * (positive + 1) / 2) / (positive * (len(labels) - positive)))


def in_ray() -> Any:
    """The table in Ray's memory."""
    import ray.data

    return ray.data.from_arrow(blocks())


def few_in_ray() -> Any:
    """A few rows of it. Who trains on them first has all processes running afterwards that Ray reads data with."""
    import ray.data

    return ray.data.from_arrow([block.slice(0, 1000) for block in blocks()])


def seconds_and_model(trainer: Any) -> tuple[float, float, Any]:
    """Train with few rows, and then with all of them: seconds without what Ray needs to start, those to read the rows, the model."""
    trainer.copy_with(datasets={"train": few_in_ray}).fit()
    result = trainer.fit()
    seconds = max(sum(of_rank.values()) - of_rank["wait_s"] for of_rank in result.returned)
    return seconds, max(of_rank["read_s"] for of_rank in result.returned), result.checkpoint.get_model()
