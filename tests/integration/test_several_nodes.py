"""Gangs that span nodes: every worker knows its place on its node, and gradients are averaged across nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.integration import backends

SCRIPT = """
import json
import os
import sys

import ray
from ray.cluster_utils import Cluster

sys.path.insert(0, {root!r})
from tests.integration import backends
from trainlib import session

STEPS = 10


def train_func(config):
    weights = backends.FITS[config["backend"]](STEPS)
    context = session.get_context()
    session.report({{"done": 1}})
    of_framework = None
    if config["backend"] == "horovod":
        import horovod.torch as hvd

        of_framework = [hvd.rank(), hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()]
    elif config["backend"] == "torch":
        names = ["RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "WORLD_SIZE"]
        of_framework = [int(os.environ[name]) for name in names]
    place = [context.get_world_rank(), context.get_local_rank(), context.get_local_world_size(), context.get_node_rank()]
    return place, of_framework, weights


if __name__ == "__main__":
    first, second = map(int, sys.argv[1:3])
    cluster = Cluster(initialize_head=True, head_node_args={{"num_cpus": first}})
    cluster.add_node(num_cpus=second)
    os.environ["RAY_ADDRESS"] = cluster.address
    returned = {{
        backend: backends.trainer(backend, train_func, workers=first + second).fit().returned
        for backend in sys.argv[3:]
    }}
    print(json.dumps(returned), flush=True)
    ray.shutdown()
    cluster.shutdown()
"""

# rank, local rank, workers on the node, node rank
PLACES = {
    (2, 2): [[0, 0, 2, 0], [1, 1, 2, 0], [2, 0, 2, 1], [3, 1, 2, 1]],
    (3, 1): [[0, 0, 3, 0], [1, 1, 3, 0], [2, 2, 3, 0], [3, 0, 1, 1]],
}
# rank, local rank, workers on the node; then, among the workers with that local rank: its place, and how many
HOROVOD = [[0, 0, 3, 0, 2], [1, 1, 3, 0, 1], [2, 2, 3, 0, 1], [3, 0, 1, 1, 2]]


@pytest.mark.parametrize(
    ("layout", "frameworks"),
    [((2, 2), ["torch", "tensorflow"]), ((3, 1), ["torch", "horovod"])],
    ids=["2 and 2 workers", "3 and 1 workers"],
)
def test_ranks_are_right_and_gradients_are_averaged_across_nodes(driver, layout, frameworks):
    script = driver(SCRIPT.format(root=str(Path(__file__).parents[2])), *map(str, layout), *frameworks)
    assert script.wait(timeout=240) == 0, script.output
    returned = script.last_json()

    expected = backends.fit_in_one_process(10)
    for backend, workers in returned.items():
        places = [place for place, _, _ in workers]
        assert places == PLACES[layout], backend
        for _, _, weights in workers:
            assert weights == workers[0][2], f"{backend}: bitwise equal on all nodes"
        np.testing.assert_allclose(workers[0][2], expected, rtol=1e-5)
    if "horovod" in frameworks:
        assert [of_framework for _, of_framework, _ in returned["horovod"]] == HOROVOD
    assert [of_framework for _, of_framework, _ in returned["torch"]] == [[*place, 4] for place in PLACES[layout]]
