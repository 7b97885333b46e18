"""RLlib under trainlib: where its actors are, what is recorded, and that a training goes on after a lost process."""

from __future__ import annotations

import os
import pickle
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import ray
import torch
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.spaces import Box, Discrete
from ray.rllib.callbacks.callbacks import RLlibCallback

from tests.without_trainlib import predictions_without_trainlib
from trainlib import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig, session, tune
from trainlib._registry.models import promote_checkpoint
from trainlib._registry.store import current_store
from trainlib.flows import predict
from trainlib.rl import RLCheckpoint, RLTrainer
from trainlib.rl._served import load
from trainlib.tune import TuneConfig, Tuner

BATCH = 200
QUICK = {"train_batch_size_per_learner": BATCH, "minibatch_size": 100, "num_epochs": 1}
# RLlib imports TensorFlow into each of its processes, if it is installed, and uses it for nothing here.
WITHOUT_TENSORFLOW = {"env_vars": {"RLLIB_TEST_NO_TF_IMPORT": "1"}}


class WatchedCartPole(CartPoleEnv):
    """Notes which process it is in, and in which placement group that process is."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        group = ray.get_runtime_context().get_placement_group_id()
        Path(config["folder"], str(os.getpid())).write_text(str(group))


def groups(folder: Path) -> dict[int, str]:
    """The placement groups of the processes that have an environment."""
    return {int(file.name): file.read_text() for file in folder.iterdir() if file.name.isdigit()}


def wait_until_kept(checkpoint: str) -> None:
    """Called in the process of the algorithm: a checkpoint is kept a little after its iteration was reported."""
    while not Path(session.get_trial_dir(), "checkpoints", checkpoint).exists():
        time.sleep(0.05)


class Faults(RLlibCallback):
    """Kills the algorithm in its second iteration, and one of its env runners in the third; each once."""

    def on_train_result(self, *, algorithm: Any, result: dict, **_: Any) -> None:
        folder = Path(algorithm.config.env_config["folder"])
        match algorithm.iteration, algorithm.config.env_config["fault"]:
            case 2, "algorithm" if once(folder / "algorithm"):
                wait_until_kept("checkpoint_000000")
                os.kill(os.getpid(), signal.SIGKILL)
            case 3, _ if once(folder / "runner"):
                wait_until_kept("checkpoint_000001")
                os.kill(
                    algorithm.env_runner_group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)[0],
                    signal.SIGKILL,
                )


def normalized(env: Any, spaces: Any, device: Any) -> Any:
    from ray.rllib.connectors.env_to_module import MeanStdFilter

    return MeanStdFilter()


def connector_of(checkpoint: RLCheckpoint) -> Any:
    (connector,) = pickle.loads(Path(checkpoint.path, "connectors.pkl").read_bytes())
    return connector


def once(mark: Path) -> bool:
    is_new = not mark.exists()
    mark.touch()
    return is_new


def training(folder: Path, fault: str, num_workers: int, iterations: int, **config: Any) -> RLTrainer:
    env_config = {"folder": str(folder), "fault": fault}
    return RLTrainer(
        "PPO",
        config={"env": WatchedCartPole, "env_config": env_config, "callbacks_class": Faults, **QUICK, **config},
        scaling_config=ScalingConfig(num_workers=num_workers),
        run_config=RunConfig(
            name=f"rl-{folder.name}-{fault}",
            stop={"num_env_steps_sampled_lifetime": iterations * BATCH},
            failure_config=FailureConfig(max_failures=1),
            runtime_env=WITHOUT_TENSORFLOW,
        ),
    )


def test_all_actors_are_in_the_gang_and_lost_processes_leave_one_run_and_one_curve(tmp_path, curve, newest_run):
    """The algorithm's own process is lost: a retry. An env runner is lost: RLlib itself replaces it."""
    evaluating = {"evaluation_interval": 2, "evaluation_num_env_runners": 1, "evaluation_duration": 1}
    normalizing = {"_env_to_module_connector": normalized}
    result = training(tmp_path, "algorithm", num_workers=2, iterations=4, **evaluating, **normalizing).fit()
    assert result.attempts == 2
    assert newest_run(f"rl-{tmp_path.name}-algorithm").info.run_id == result.run_id
    sampled = curve(result.run_id, "num_env_steps_sampled_lifetime")
    assert sampled == [(step, step * BATCH) for step in range(1, 5)], "the counters went on"
    healthy = [runners for _, runners in curve(result.run_id, "fault_tolerance/num_healthy_workers")]
    assert min(healthy) == 1, "an env runner was lost"
    assert result.metrics["evaluation"]["env_runners"]["episode_return_mean"] > 0
    assert result.metrics["env_runners"]["episode_return_mean"] > 0

    found = groups(tmp_path)
    assert len(found) >= 2 * 3, "two env runners and one for evaluation, in each of two attempts"
    assert len(set(found.values())) == 2, "of each attempt"
    assert "None" not in found.values()

    assert isinstance(result.checkpoint, RLCheckpoint)
    module = result.checkpoint.get_module()
    assert module.action_space.n == 2
    states = np.random.default_rng(0).normal(0, 0.1, (50, 4)).astype("float32")
    actions = load(result.checkpoint.path)(pd.DataFrame(states, columns=["x", "v", "angle", "spin"]))
    stats = connector_of(result.checkpoint)._filters[None].running_stats
    assert stats.num_pushes >= 2 * BATCH, "of all env runners"
    seen = torch.as_tensor((states - stats.mean) / (stats.std + 1e-8), dtype=torch.float32)
    expected = module.forward_inference({"obs": seen})["action_dist_inputs"].argmax(-1)
    assert actions.tolist() == expected.tolist(), "it sees what it saw while training"


def test_a_lost_env_runner_that_is_not_to_be_replaced_is_a_failed_attempt(tmp_path, curve, capsys):
    """It is also to stop at a metric that RLlib has no longer, which is said once."""
    trainer = training(tmp_path, "runner", num_workers=1, iterations=4, restart_failed_env_runners=False)
    run_config = trainer.run_config
    stop = {**run_config.stop, "episode_reward_mean": 1e6}
    result = trainer.copy_with(run_config=run_config.model_copy(update={"stop": stop})).fit()
    assert result.attempts == 2
    shown = "".join(capsys.readouterr())
    assert "API stack" not in shown, "RLlib's advice to leave it"
    assert "gputil" not in shown
    assert "DeprecationWarning" not in shown
    assert shown.count("has no 'episode_reward_mean'. Did you mean 'env_runners/episode_return_mean'?") == 1
    assert curve(result.run_id, "num_env_steps_sampled_lifetime") == [(step, step * BATCH) for step in range(1, 5)]


def steps(count: int) -> pd.DataFrame:
    """Recorded steps of a pole that is pushed to the side to which it falls."""
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(count, 4)).astype("float32")
    last = np.arange(count) % 20 == 19
    return pd.DataFrame(
        {
            "eps_id": np.arange(count) // 20,
            "t": np.arange(count) % 20,
            "obs": list(observations),
            "new_obs": list(np.roll(observations, -1, axis=0)),
            "actions": (observations[:, 2] > 0).astype("int64"),
            "rewards": np.ones(count, "float32"),
            "terminateds": last,
            "truncateds": np.zeros(count, bool),
        }
    )


def test_a_sweep_finds_what_learns_from_a_dataset_and_its_registered_model_acts_without_trainlib(registry, tmp_path):
    """Trials are stopped at an iteration that is not due, and saved all the same."""
    trainer = RLTrainer(
        "BC",
        config={
            "observation_space": Box(-10, 10, (4,)),
            "action_space": Discrete(2),
            "train_batch_size_per_learner": 256,
            "dataset_num_iters_per_learner": 20,
        },
        datasets={"train": steps(2000)},
        run_config=RunConfig(
            stop={"training_iteration": 3},
            checkpoint_config=CheckpointConfig(checkpoint_frequency=2, checkpoint_at_end=True),
            runtime_env=WITHOUT_TENSORFLOW,
        ),
    )
    loss = "learners/default_policy/policy_loss"
    trials = Tuner(
        trainer,
        param_space={"config": {"lr": tune.grid_search([1e-7, 0.01])}},
        tune_config=TuneConfig(metric=loss, mode="min"),
    ).fit()
    result = trials.get_best_result()
    assert len(trials) == 2
    assert trials.num_errors == 0
    assert result.config["config"]["lr"] == 0.01
    assert result.rows == {"train": [[2000]]}, "written once"
    act = load(result.checkpoint.path)
    assert act(pd.DataFrame({"obs": [[0, 0, 2, 0], [0, 0, -2, 0]]})).tolist() == [1, 0]

    experiment = registry.get_run(result.run_id).info.experiment_id
    saved = registry.search_logged_models([experiment], filter_string=f"source_run_id = '{result.run_id}'")
    models = {int(each.tags["trainlib.iteration"]): each for each in saved}
    assert sorted(models) == [2, 3]
    assert models[3].model_id in result.checkpoint.path
    promote_checkpoint(models[3].model_id, "pushes")
    rows = pd.DataFrame([[0, 0, 2, 0], [0, 0, -2, 0]], columns=["x", "v", "angle", "spin"])
    store = {"MLFLOW_TRACKING_URI": current_store().uri}
    elsewhere, _ = predictions_without_trainlib(
        {"models:/pushes@best": rows}, needs=["ray"], **store, **WITHOUT_TENSORFLOW["env_vars"]
    )
    assert elsewhere == {"models:/pushes@best": [1, 0]}
    rows.to_parquet(tmp_path / "rows.parquet")
    written = predict("models:/pushes@best", str(tmp_path / "rows.parquet"), num_workers=1, storage_path=str(tmp_path))
    predicted = pd.read_parquet([str(each) for each in Path(written.folder).glob("*.parquet")])
    assert predicted["prediction"].tolist() == [1, 0]


@pytest.fixture(autouse=True)
def no_folder_in_the_home():
    """RLlib would leave a folder for each algorithm."""
    folder = Path("~/ray_results").expanduser()
    before = set(folder.iterdir()) if folder.exists() else set()
    yield
    assert (set(folder.iterdir()) if folder.exists() else set()) == before
