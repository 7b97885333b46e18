"""Gangs that span nodes: every worker knows its place on its node, and gradients are averaged across nodes."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from tests.integration import backends
from tests.integration.extra_nodes import SEAT, extra_nodes
from trainlib import ScalingConfig, session
from trainlib.lightgbm import LightGBMTrainer
from trainlib.xgboost import XGBoostTrainer

STEPS = 10
FOUR = ScalingConfig(num_workers=4, resources_per_worker={"CPU": 1, SEAT: 1})


def train_func(config):
    weights = backends.FITS[config["backend"]](STEPS)
    context = session.get_context()
    session.report({"done": 1})
    of_framework = None
    if config["backend"] == "horovod":
        import horovod.torch as hvd

        of_framework = [hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()]
    elif config["backend"] == "torch":
        names = ["RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "WORLD_SIZE"]
        of_framework = [int(os.environ[name]) for name in names]
    place = [
        context.get_world_rank(),
        context.get_local_rank(),
        context.get_local_world_size(),
        context.get_node_rank(),
    ]
    return place, of_framework, weights


LAYOUT = (3, 1)
# rank, local rank, workers on the node, node rank
PLACES = [[0, 0, 3, 0], [1, 1, 3, 0], [2, 2, 3, 0], [3, 0, 1, 1]]
# rank, local rank, workers on the node; then, among the workers with that local rank: its place, and how many
HOROVOD = [[0, 0, 3, 0, 2], [1, 1, 3, 0, 1], [2, 2, 3, 0, 1], [3, 0, 1, 1, 2]]


ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(1001, 4)), columns=list("abcd"))
TREES = {
    "label_column": "target",
    "num_boost_round": 5,
    "datasets": {"train": ROWS.assign(target=(ROWS["a"] > ROWS["b"]).astype(int))},
    "scaling_config": FOUR,
}


def test_ranks_are_right_and_gradients_are_averaged_across_nodes():
    """With as many workers on one node as on the other: see ``test_servers``. Trees are one model of the rows on all nodes."""
    with extra_nodes(LAYOUT):
        returned = {
            backend: backends.trainer(backend, train_func, scaling_config=FOUR).fit().returned
            for backend in backends.BACKENDS
        }
        trees = [
            XGBoostTrainer(params={"objective": "binary:logistic", "eval_metric": "error"}, **TREES).fit(),
            LightGBMTrainer(params={"objective": "binary", "metric": "binary_error"}, **TREES).fit(),
        ]

    expected = backends.fit_in_one_process(STEPS)
    for backend, workers in returned.items():
        places = [place for place, _, _ in workers]
        assert places == PLACES, backend
        for _, _, weights in workers:
            assert weights == workers[0][2], f"{backend}: bitwise equal on all nodes"
        np.testing.assert_allclose(workers[0][2], expected, rtol=1e-5)
    assert [of_framework for _, of_framework, _ in returned["horovod"]] == HOROVOD
    assert [of_framework for _, of_framework, _ in returned["torch"]] == [[*place, 4] for place in PLACES]
    for result, error in zip(trees, ("train-error", "train-binary_error"), strict=True):
        assert [sorted(of_ranks) for of_ranks in result.rows["train"]] == [[250, 250, 250, 251]], (
            "all rows, on both nodes"
        )
        assert result.metrics["training_iteration"] == 5
        assert result.metrics[error] < 0.2
