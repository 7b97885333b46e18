"""What chooses actions with a checkpoint: it sees what the module saw while training, or says why it cannot."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete

from trainlib.rl._acting import write_acting
from trainlib.rl._rllib import tensorflow_left_alone
from trainlib.rl._served import MODULES, load, why_not

SPACE, ACTIONS = Box(-100, 100, (2, 2)), Discrete(3)


def saved(folder: Any, connectors: Any = (), observations: Any = SPACE, **model: Any) -> tuple[str, Any, Any]:
    """A checkpoint's files that matter here, its module, and its connectors. No algorithm is built, which takes a Ray."""
    with tensorflow_left_alone():
        from ray.rllib.algorithms.ppo import PPOConfig

        config = PPOConfig().environment(observation_space=observations, action_space=ACTIONS)
        config = config.rl_module(model_config=model).env_runners(
            env_to_module_connector=lambda env, spaces, device: list(connectors)
        )
        spaces = {"__env_single__": (observations, ACTIONS), "__env__": (observations, ACTIONS)}
        pipeline = config.build_env_to_module_connector(spaces=spaces)
        seen = (pipeline.observation_space, ACTIONS)
        torch.manual_seed(0)
        module = config.get_rl_module_spec(spaces={"__env_single__": seen, "default_policy": seen}).build()
    for each in (1.0, 5.0, 30.0):  # what was seen while training
        pipeline(rl_module=module, episodes=[episode(np.full((2, 2), each))], explore=True, shared_data={})
    module.save_to_path(os.path.join(folder, MODULES, "default_policy"))
    learner = SimpleNamespace(module={"default_policy": module})
    algorithm = SimpleNamespace(
        config=config,
        env_runner=SimpleNamespace(_env_to_module=pipeline),
        learner_group=SimpleNamespace(foreach_learner=lambda ask: [SimpleNamespace(ok=True, get=lambda: ask(learner))]),
    )
    write_acting(algorithm, str(folder))
    return str(folder), module, pipeline


def episode(observation: Any) -> Any:
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    return SingleAgentEpisode(
        observations=[observation.astype("float32")], observation_space=SPACE, action_space=ACTIONS
    )


def test_observations_are_flattened_and_normalized_as_while_training(tmp_path):
    from ray.rllib.connectors.env_to_module import FlattenObservations, MeanStdFilter

    folder, module, pipeline = saved(tmp_path, [FlattenObservations(), MeanStdFilter()])
    pipeline.connectors[1]._update_stats = False
    rng = np.random.default_rng(0)
    observations = rng.normal(12, 12, (40, 2, 2))
    batch = pipeline(rl_module=module, episodes=list(map(episode, observations)), explore=False, shared_data={})
    expected = module.forward_inference(batch)["action_dist_inputs"].argmax(-1).tolist()
    assert len(set(expected)) > 1
    assert why_not(folder) is None
    act = load(folder)
    flat = pd.DataFrame(observations.reshape(40, 4))
    assert act(flat).tolist() == expected
    assert act(flat).tolist() == expected, "what it has seen meanwhile changes nothing"
    assert act(pd.DataFrame({"obs": list(observations)})).tolist() == expected
    assert act(flat[:0]).shape == (0,)
    with pytest.raises(ValueError, match=r"the rows have 5 values, .* but an observation has 4"):
        act(flat.assign(reward=1.0))


def test_a_recurrent_module_says_that_a_row_is_not_enough(tmp_path):
    folder, _, _ = saved(tmp_path, observations=Box(-1, 1, (4,)), use_lstm=True)
    assert "its module is recurrent: an action depends on the steps before" in str(why_not(folder))
    (tmp_path / "served.json").unlink()  # of an earlier trainlib
    with pytest.raises(ValueError, match="cannot predict by itself: its module is recurrent"):
        load(folder)


def test_a_connector_that_may_look_at_earlier_steps_is_named(tmp_path):
    (tmp_path / MODULES / "default_policy").mkdir(parents=True)
    (tmp_path / "served.json").write_text(json.dumps({"connectors": ["FlattenObservations", "MeanStdFilter"]}))
    assert why_not(str(tmp_path)) is None
    (tmp_path / "served.json").write_text(json.dumps({"connectors": ["MeanStdFilter", "FrameStacking"]}))
    assert "it was trained with FrameStacking, and a row may not be enough" in str(why_not(str(tmp_path)))
    (tmp_path / MODULES / "other").mkdir()
    assert "trainlib cannot tell which one should act" in str(why_not(str(tmp_path)))


def test_observations_that_are_no_row_are_named(tmp_path):
    from ray.rllib.connectors.env_to_module import FlattenObservations

    folder, _, _ = saved(tmp_path, observations=Box(-1, 1, (4,)))
    parts = FlattenObservations(input_observation_space=Dict({"a": SPACE, "b": SPACE}), input_action_space=ACTIONS)
    (tmp_path / "connectors.pkl").write_bytes(cloudpickle.dumps([parts]))
    with pytest.raises(ValueError, match="its observations are a Dict, which does not fit into a row"):
        load(folder)
