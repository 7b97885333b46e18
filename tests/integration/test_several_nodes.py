"""Gangs that span nodes: every worker knows its place on its node, and gradients are averaged across nodes."""

from __future__ import annotations

import os

import numpy as np

from tests.integration import backends
from tests.integration.extra_nodes import SEAT, extra_nodes
from trainlib import ScalingConfig, session

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


def test_ranks_are_right_and_gradients_are_averaged_across_nodes():
    """With as many workers on one node as on the other: see ``test_servers``."""
    with extra_nodes(LAYOUT):
        returned = {
            backend: backends.trainer(backend, train_func, scaling_config=FOUR).fit().returned
            for backend in backends.BACKENDS
        }

    expected = backends.fit_in_one_process(STEPS)
    for backend, workers in returned.items():
        places = [place for place, _, _ in workers]
        assert places == PLACES, backend
        for _, _, weights in workers:
            assert weights == workers[0][2], f"{backend}: bitwise equal on all nodes"
        np.testing.assert_allclose(workers[0][2], expected, rtol=1e-5)
    assert [of_framework for _, of_framework, _ in returned["horovod"]] == HOROVOD
    assert [of_framework for _, of_framework, _ in returned["torch"]] == [[*place, 4] for place in PLACES]
