"""RLTrainer: what it makes of its arguments, and what it says about those that it cannot use."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import cloudpickle
import gymnasium
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.spaces import Box, Discrete
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPO, PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner
from ray.tune.registry import _unregister_envs, register_env

from trainlib import CheckpointConfig, RunConfig, ScalingConfig, tune
from trainlib import _rooms as rooms
from trainlib._trainer_form import form_of
from trainlib.errors import CheckpointNotFoundError, InvalidArgumentError
from trainlib.rl import RLCheckpoint, RLTrainer
from trainlib.rl._algorithms import algorithm_config
from trainlib.rl._offline import write_parquet
from trainlib.rl._room import ROOM
from trainlib.rl._served import why_not

CARTPOLE = {"env": "CartPole-v1"}
SPACES = {
    "observation_space": Box(-10, 10, (4,)),
    "action_space": Discrete(2),
    "dataset_num_iters_per_learner": 1,
}
SPACES_ALONE = {name: SPACES[name] for name in ("observation_space", "action_space")}
STEPS = pd.DataFrame({"obs": [[0.0] * 4], "actions": [1]})


class Mixed(PPO):
    """Learns from its environment and from recorded steps."""

    def training_step(self) -> None:
        self.offline_data.sample(1)


class Old(PPO):
    """Was written for RLlib's old API stack."""

    @classmethod
    def get_default_config(cls) -> PPOConfig:
        return PPOConfig(algo_class=cls).api_stack(False, False)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"algorithm": "PPPO"}, ValueError, r"RLlib has no algorithm 'PPPO'. It has APPO, BC, .*Did you mean 'PPO'\?"),
        ({"algorithm": 3}, InvalidArgumentError, "algorithm is .*: pass the name of one of RLlib's, e.g. 'PPO'"),
        ({"algorithm": None}, InvalidArgumentError, "algorithm is .*: pass the name of one of RLlib's"),
        (
            {"algorithm": "PPO", "config": ["env"]},
            InvalidArgumentError,
            "config is .*: pass a dict, or an AlgorithmConfig",
        ),
        (
            {"algorithm": "DQN", "config": PPOConfig()},
            InvalidArgumentError,
            "config is a PPOConfig, but the algorithm DQN",
        ),
        (
            {"algorithm": "PPO", "config": {**CARTPOLE, "learning_rate": 0.1}},
            ValueError,
            "config has 'learning_rate', but PPO has no such setting",
        ),
        (
            {"algorithm": "PPO", "config": {**CARTPOLE, "num_env_runners": 4}},
            ValueError,
            r"config\['num_env_runners'\] is 4, but scaling_config has 1 worker",
        ),
        (
            {"algorithm": "PPO", "config": {**CARTPOLE, "minibatch_size": 10_000}},
            ValueError,
            "minibatch_size",
        ),
        ({"algorithm": "BC", "datasets": {"validation": "x.csv"}}, ValueError, "RLTrainer reads 'train' alone"),
        *(
            ({"algorithm": name, "config": CARTPOLE, "datasets": {"train": STEPS}}, ValueError, "would ignore datasets")
            for name in ("PPO", "APPO", "DQN", "SAC", PPO)
        ),
        *(
            (
                {"algorithm": name, "config": SPACES},
                ValueError,
                f"{name} learns from recorded steps. No datasets were given",
            )
            for name in ("BC", "MARWIL", "CQL", "IQL")
        ),
        (
            {"algorithm": "BC", "config": {**SPACES, "input_": ["steps"]}, "datasets": {"train": STEPS}},
            ValueError,
            "datasets has 'train', and config names recorded steps, too: input_ is .*Pass one of them",
        ),
        *(
            (
                {"algorithm": "PPO", "config": {**CARTPOLE, name: False}},
                ValueError,
                f"config has {name}=False, but .* new API stack",
            )
            for name in ("enable_rl_module_and_learner", "enable_env_runner_and_connector_v2")
        ),
        (
            {"config": PPOConfig().environment("CartPole-v1").api_stack(False, False)},
            ValueError,
            "config has enable_rl_module_and_learner=False, but .* Leave enable_rl_module_and_learner and .* out",
        ),
        (
            {"algorithm": Old, "config": CARTPOLE},
            ValueError,
            "Old runs on RLlib's old API stack by default, .* pass config={'enable_rl_module_and_learner': True, ",
        ),
        *(
            (
                given,
                ValueError,
                rf"^config has framework='{name}', but .* whose models are PyTorch's\. Leave framework out, .* rl_module_spec$",
            )
            for name in ("tf", "tf2")
            for given in (
                {"algorithm": "PPO", "config": {**CARTPOLE, "framework": name, "evaluation_num_workers": 1}},
                {"algorithm": "PPO", "config": {**CARTPOLE, "framework_str": name}},
                {"config": PPOConfig().environment("CartPole-v1").framework(name)},
            )
        ),
        ({"algorithm": "PPO"}, ValueError, "PPO learns from an environment. None was given. Pass one: config={'env': "),
        ({"config": DQNConfig()}, ValueError, "DQN learns from an environment. None was given"),
        (
            {"algorithm": "PPO", "config": {"env": "CartPole-v11"}},
            ValueError,
            r"there is no environment 'CartPole-v11'. Did you mean 'CartPole-v1'\? Register your own with ray.tune.register_env",
        ),
        (
            {"algorithm": "PPO", "config": {"env": "Maze"}},
            ValueError,
            "no environment 'Maze'. Register .* 'my_module:Maze'",
        ),
        (
            {"algorithm": "BC", "config": {**SPACES, "env": "CartPol"}, "datasets": {"train": STEPS}},
            ValueError,
            r"no environment 'CartPol'. Did you mean 'CartPole-v1'\?",
        ),
        *(
            (
                {"algorithm": algorithm, "config": {**SPACES_ALONE, "env": env}, "datasets": datasets},
                InvalidArgumentError,
                r"config: env is a (int|CartPoleEnv)\. Pass a name, a class or a function",
            )
            for algorithm, datasets in (("PPO", None), ("BC", {"train": STEPS}))
            for env in (7, CartPoleEnv())
        ),
        (
            {"algorithm": "PPO", "config": {"env": "gymnasium.envs.classic_control.CartPoleEnv"}},
            ValueError,
            r"there is no environment 'gymnasium\.envs\.classic_control\.CartPoleEnv'\. RLlib imports no class by its path: pass the class",
        ),
    ],
)
def test_what_cannot_be_used_is_named_before_anything_starts(arguments, error, message):
    with pytest.raises(error, match=message):
        RLTrainer(**arguments)


def test_an_environment_may_be_registered_or_made_by_what_the_user_gives():
    register_env("labyrinth", lambda _: CartPoleEnv())
    gymnasium.register("Corridor-v3", CartPoleEnv)
    gymnasium.register("tools.Corridor-v3", CartPoleEnv)
    try:
        made = (CartPoleEnv, lambda _: CartPoleEnv())
        for env in (
            "labyrinth",
            "Corridor-v3",
            "CartPole",
            "tools.Corridor-v3",
            "ale_py:ALE/Pong-v5",
            "only_on_the_workers:Maze-v0",
            *made,
        ):
            RLTrainer("PPO", config={"env": env})
        with pytest.raises(ValueError, match=r"no environment 'labyrint'. Did you mean 'labyrinth'\?"):
            RLTrainer("PPO", config={"env": "labyrint"})
    finally:
        gymnasium.registry.pop("Corridor-v3")
        gymnasium.registry.pop("tools.Corridor-v3")
        _unregister_envs()
    RLTrainer("PPO", config={"env_runner_cls": SingleAgentEnvRunner, **SPACES_ALONE})  # environments of somebody else


@pytest.mark.parametrize("name", ["input", "input_"])
def test_recorded_steps_may_be_a_dataset_or_a_path_in_the_config(name):
    for algorithm in ("BC", "MARWIL", "IQL"):
        RLTrainer(algorithm, config=SPACES, datasets={"train": STEPS})
    RLTrainer("CQL", config={**SPACES, "lr": None}, datasets={"train": STEPS})
    RLTrainer("BC", config={**SPACES, name: ["/data/steps"]})
    RLTrainer(Mixed, config=CARTPOLE, datasets={"train": STEPS})  # whoever writes an algorithm knows what it reads


def test_a_function_may_make_the_environment():
    """RLlib's algorithms refuse functions, and take classes."""
    made = algorithm_config("PPO", {"env": lambda context: CartPoleEnv(**context)}, ScalingConfig())
    assert isinstance(PPO._get_env_id_and_creator(made.env, made)[1]({"sutton_barto_reward": True}), CartPoleEnv)
    runner = SingleAgentEnvRunner(config=made, worker_index=1, num_workers=1, spaces=None)
    assert isinstance(runner.env.unwrapped.envs[0].unwrapped, CartPoleEnv)


def test_torch_may_be_named():
    RLTrainer("PPO", config={**CARTPOLE, "framework": "torch"})
    RLTrainer(config=PPOConfig().environment("CartPole-v1").framework("torch"))


def test_the_last_iteration_may_be_saved_however_rarely_the_others_are():
    saving = CheckpointConfig(checkpoint_frequency=5, checkpoint_at_end=True)
    RLTrainer("PPO", config=CARTPOLE, run_config=RunConfig(checkpoint_config=saving))


def test_whoever_describes_an_algorithm_can_train_with_tensorflow_next():
    code = """
from trainlib.rl import RLTrainer
RLTrainer("PPO", config={"env": "CartPole-v1"})
import os, sys
assert "tensorflow" not in sys.modules
assert "RLLIB_TEST_NO_TF_IMPORT" not in os.environ
"""
    environment = {name: value for name, value in os.environ.items() if name != "RLLIB_TEST_NO_TF_IMPORT"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setattr(rooms, "find_spec", lambda package: None if package == "gymnasium" else "found")
    with pytest.raises(ImportError, match=r"RLTrainer needs gymnasium: pip install 'trainlib\[rl\]'"):
        RLTrainer("PPO", config=CARTPOLE)


def test_workers_are_env_runners_and_all_of_rllibs_actors_have_room_in_the_gang():
    config = {**CARTPOLE, "evaluation_interval": 1, "evaluation_num_env_runners": 2, "num_learners": 1}
    scaling = ScalingConfig(
        num_workers=3, resources_per_worker={"CPU": 0.5}, trainer_resources={"CPU": 2}, placement_strategy="SPREAD"
    )
    gang = RLTrainer("PPO", config=config, scaling_config=scaling).settings.gang
    assert gang.num_workers == 1, "one process runs the algorithm"
    assert gang.bundles == [{"CPU": 2}, *[{"CPU": 0.5}] * 5, {"CPU": 1}]
    assert gang.placement_strategy == "SPREAD"


def test_a_config_of_rllibs_is_kept_as_what_was_set_in_it():
    made = (
        PPOConfig().environment("CartPole-v1", env_config={"a": 1}).training(lr=0.01, train_batch_size_per_learner=500)
    )
    trainer = RLTrainer(config=made.env_runners(num_env_runners=2), scaling_config=ScalingConfig(num_workers=2))
    own = trainer.train_loop_config
    assert own["algorithm"] == "PPO"
    assert own["config"]["lr"] == 0.01
    assert own["config"]["env_config"] == {"a": 1}
    assert len(own["config"]) < 8, "and not all of the defaults"
    assert RLTrainer(PPO, config=CARTPOLE).train_loop_config["algorithm"] == "PPO"


def test_its_arguments_survive_other_processes_and_a_sweep_tries_them():
    stop = RunConfig(stop={"training_iteration": 2}, checkpoint_config=CheckpointConfig(checkpoint_frequency=2))
    trainer = RLTrainer("PPO", config={**CARTPOLE, "lr": 0.1, "gamma": 0.9}, run_config=stop)
    saved = cloudpickle.loads(trainer.settings.dumps()).unpacked()
    assert RLTrainer.from_settings(saved).arguments() == trainer.arguments()
    plan = tune.Tuner(trainer, param_space={"config": {"lr": tune.grid_search([0.01, 0.02])}}).plan
    trial = plan.trainable.trainer({"config": {"lr": 0.02}}, plan.run_fields)
    assert trial.train_loop_config["config"] == {**CARTPOLE, "lr": 0.02, "gamma": 0.9}
    assert form_of(ROOM).showing(trainer, lambda value: value).arguments() == trainer.train_loop_config


def test_a_sweep_waits_for_the_return_of_an_episode_that_takes_many_iterations():
    assert ROOM.reports_rarely("env_runners/episode_return_mean")
    assert ROOM.reports_rarely("evaluation/env_runners/episode_return_mean")
    assert not ROOM.reports_rarely("episode_reward_mean")


def test_recorded_steps_are_read_on_the_node_that_has_written_them(tmp_path):
    from ray.data._internal.util import _is_local_scheme

    tables = [pa.table({"obs": [[0.0], [1.0]], "actions": [0, 1]})] * 2
    written = write_parquet(SimpleNamespace(iter_batches=lambda **_: tables), tmp_path)
    assert _is_local_scheme(written), "the disks of other nodes do not have them"
    assert pq.read_table(written.removeprefix("local://")).num_rows == 4


def test_a_checkpoint_of_something_else_is_no_algorithm(tmp_path):
    (tmp_path / "model.txt").write_text("")
    with pytest.raises(CheckpointNotFoundError, match=r"has no module 'default_policy'\. It has none"):
        RLCheckpoint(tmp_path).get_module()
    with pytest.raises(
        CheckpointNotFoundError, match=r"This checkpoint was not saved by an RLlib algorithm\. Pass one"
    ):
        RLCheckpoint(tmp_path).restore(None)
    assert why_not(str(tmp_path)) == "it has no module that chooses actions"
