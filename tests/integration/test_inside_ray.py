"""``fit()`` in a task or an actor of the user's own: its workers join the same Ray."""

from __future__ import annotations

import os
from typing import Any

import pytest
import ray

from tests.integration.leftovers import assert_nothing_left_behind
from trainlib import DataParallelTrainer, ScalingConfig, session
from trainlib._execution import cluster
from trainlib.errors import TrainingFailedError
from trainlib.flows import _embedded as embedded


def train_func():
    session.report({"step": 1})
    return ray.get_runtime_context().gcs_address


def train() -> Any:
    return DataParallelTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()


@ray.remote(num_cpus=0)
def in_a_task():
    result = train()
    return result.returned, result.run_id, os.getpid()


@ray.remote(num_cpus=2)
class InAnActor:
    def train_twice(self):
        results = [train() for _ in range(2)]
        return [result.returned for result in results], results[-1].run_id, os.getpid()

    def train_without_room(self):
        free = ray.cluster_resources()["CPU"] - 1
        scaling = ScalingConfig(num_workers=2, resources_per_worker={"CPU": free / 2}, placement_timeout_s=1)
        with pytest.raises(TrainingFailedError) as caught:
            DataParallelTrainer(train_func, scaling_config=scaling).fit()
        return str(caught.value)


def test_workers_of_a_training_in_a_task_or_actor_join_its_ray(registry):
    cluster.connect()
    embedded.start()
    embedded.wait()
    services = {
        name: value for name, value in os.environ.items() if name.startswith(("PREFECT_", "MLFLOW_", "TRAINLIB_"))
    }
    options: dict[str, Any] = {"runtime_env": {"env_vars": services}}
    actor = InAnActor.options(**options).remote()
    (by_task, run_of_task, task), (by_actor, run_of_actor, process) = ray.get(
        [in_a_task.options(**options).remote(), actor.train_twice.remote()]
    )
    problem = ray.get(actor.train_without_room.remote())
    ray.kill(actor)

    here = ray.get_runtime_context().gcs_address
    assert by_task == [here, here]
    assert by_actor == [[here, here], [here, here]]
    assert len({os.getpid(), task, process}) == 3
    for run in (run_of_task, run_of_actor):
        assert registry.get_run(run).info.status == "FINISHED"
    assert_nothing_left_behind()
    assert "fit() itself runs in a Ray actor that holds 2 CPU" in problem, "nobody else could free them"
