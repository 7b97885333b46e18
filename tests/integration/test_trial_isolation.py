"""Trials share warm workers, but nothing that a training function left in them."""

from __future__ import annotations

import os
import random

import pytest

from trainlib import RunConfig, ScalingConfig, session, tune
from trainlib._execution.pool.own_pool import pool
from trainlib.torch import TorchTrainer
from trainlib.tune import TuneConfig, Tuner

COUNTS = {"by_value": 0}

MODULE = """
import os, random

SEEN = []

class Model:
    made = 0

def train_func(config):
    import numpy as np
    import torch
    import torch.distributed as dist
    from trainlib import session

    SEEN.append(config["x"])
    Model.made += 1
    was_set = os.environ.get("LEFT_BEHIND", "")
    os.environ["LEFT_BEHIND"] = "yes"
    found = {"seen": len(SEEN), "made": Model.made, "environment": int(bool(was_set)), "group": dist.get_world_size(),
             "double": int(torch.get_default_dtype() is torch.float64), "cwd": int(os.getcwd() == "/"),
             "drawn": random.random(), "drawn_numpy": np.random.rand(), "drawn_torch": torch.rand(1).item()}
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    os.chdir("/")
    session.report(found)
"""


class CountsItself:
    made = 0


def count_by_value(config):
    COUNTS["by_value"] += 1
    CountsItself.made += 1
    session.report({"count": COUNTS["by_value"], "made": CountsItself.made})


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"user_module_{os.getpid()}_{random.randrange(10**6)}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return __import__(name)


def test_nothing_of_one_trial_reaches_the_next(module):
    results = Tuner(
        TorchTrainer(module.train_func, scaling_config=ScalingConfig(num_workers=2)),
        param_space={"train_loop_config": {"x": tune.grid_search([1, 2, 3, 4])}},
        tune_config=TuneConfig(max_concurrent_trials=1),
        run_config=RunConfig(verbose=0),
    ).fit()
    assert results.num_errors == 0, results.errors
    assert len({result.metrics["pid"] for result in results}) == 1, "they did share a worker"
    clean = {"seen": 1, "made": 1, "environment": 0, "group": 2, "double": 0, "cwd": 0}
    for result in results:
        assert {name: result.metrics[name] for name in clean} == clean
    for kind in ("drawn", "drawn_numpy", "drawn_torch"):
        assert len({result.metrics[kind] for result in results}) == 4, f"{kind}: a seed was handed on"


def test_nothing_of_a_function_that_is_sent_by_value_either():
    import sys

    import cloudpickle

    pool.clear()  # of several idle workers, trials would take turns
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        results = Tuner(
            count_by_value,
            param_space={"x": tune.grid_search([1, 2, 3])},
            tune_config=TuneConfig(max_concurrent_trials=1),
            run_config=RunConfig(verbose=0),
        ).fit()
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert len({result.metrics["pid"] for result in results}) == 1
    assert [(result.metrics["count"], result.metrics["made"]) for result in results] == [(1, 1)] * 3
