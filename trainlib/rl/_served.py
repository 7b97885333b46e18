"""Chooses actions with a checkpoint of an RLlib algorithm, also where trainlib is not installed.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import as_array
from trainlib._serving.preprocessing import unpickled

if TYPE_CHECKING:
    import pandas as pd

MODULES = "learner_group/learner/rl_module"
"""Where an algorithm's checkpoint has its modules."""
SERVED_FILE = "served.json"
"""Where it is noted what stands between the environment and the module."""
CONNECTORS_FILE = "connectors.pkl"
"""The connectors that change observations before the module sees them. A pickle."""
_BY_ROW = ("FlattenObservations", "MeanStdFilter")
"""The connectors that make of an observation what they make of it in any episode. Others may look at earlier steps."""
_SPACES = ("Box", "Discrete", "MultiBinary", "MultiDiscrete")
"""The observations that fit into a row."""


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can, or if only loading it would tell."""
    found = _modules_in(folder)
    if not found:
        return "it has no module that chooses actions"
    if len(found) > 1:
        return f"it has several modules, {', '.join(each.name for each in found)}: trainlib cannot tell which one should act"
    facts = _facts_in(folder)
    if facts.get("is_recurrent"):
        return _RECURRENT
    if unknown := [name for name in facts.get("connectors", ()) if name not in _BY_ROW]:
        return (
            f"it was trained with {', '.join(unknown)}, and a row may not be enough to repeat what that does. Let the algorithm act: "
            "RLCheckpoint.get_algorithm()"
        )
    return None


_RECURRENT = (
    "its module is recurrent: an action depends on the steps before, and a row is one step. Call RLCheckpoint.get_module() with the "
    "state of the episode"
)


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What chooses actions with the module in a folder: for each row the action that it considers best.

    The observation is the column of arrays, if there is one, else all columns, in their order. It is flattened and normalized as it was
    while training.

    Raises:
        ValueError: rows are not enough to choose actions.
    """
    import torch
    from ray.rllib.core.rl_module.rl_module import RLModule

    problem = why_not(folder)
    module: Any = RLModule.from_checkpoint(str(_modules_in(folder)[0])) if problem is None else None
    if problem is None and module.is_stateful():
        problem = _RECURRENT
    file = Path(folder, CONNECTORS_FILE)
    connectors = unpickled(file) if problem is None and file.exists() else []
    space = connectors[0].input_observation_space if connectors else getattr(module, "observation_space", None)
    if problem is None and type(space).__name__ not in _SPACES:
        problem = f"its observations are a {type(space).__name__}, which does not fit into a row"
    if problem is not None:
        raise ValueError(f"this checkpoint cannot predict by itself: {problem}")
    for each in connectors:
        each._update_stats = False  # a filter would go on counting what it sees
    facts = _facts_in(folder)

    def predict(rows: pd.DataFrame) -> Any:
        observations = _seen_by_module(_observations(rows, space), connectors, module, space)
        with torch.inference_mode():
            outputs = module.forward_inference({"obs": torch.as_tensor(observations).to(torch.float32)})
        if "actions" in outputs:
            actions = outputs["actions"]
        else:
            spread = module.get_inference_action_dist_cls().from_logits(outputs["action_dist_inputs"])
            actions = spread.to_deterministic().sample()
        return _for_environment(actions.numpy(), module.action_space, facts)

    return predict


def _modules_in(folder: str) -> list[Path]:
    root = Path(folder, MODULES)
    return sorted(each for each in root.iterdir() if each.is_dir()) if root.is_dir() else []


def _facts_in(folder: str) -> dict[str, Any]:
    file = Path(folder, SERVED_FILE)
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def _observations(rows: pd.DataFrame, space: Any) -> Any:
    """Rows as what the environment would give.

    Raises:
        ValueError: they have another number of values.
    """
    import math

    array = as_array(rows)
    wanted, given = math.prod(space.shape), math.prod(array.shape[1:])
    if given != wanted:
        raise ValueError(
            f"the rows have {given} values, {', '.join(map(str, rows.columns))}, but an observation has {wanted}. Leave out what is not "
            "part of it"
        )
    return array.astype(space.dtype).reshape(len(rows), *space.shape)


def _seen_by_module(observations: Any, connectors: list[Any], module: Any, space: Any) -> Any:
    """Observations as the module knows them. RLlib's connectors take episodes: here, each has one step."""
    import numpy as np
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

    if not connectors:
        return observations
    if not len(observations):
        return np.empty((0, *module.observation_space.shape), "float32")
    episodes = [
        SingleAgentEpisode(observations=[each], observation_space=space, action_space=module.action_space)
        for each in observations
    ]
    for connector in connectors:
        connector(rl_module=module, batch={}, episodes=episodes, explore=False, shared_data={})
    return np.stack([episode.get_observations(-1) for episode in episodes])


def _for_environment(actions: Any, space: Any, facts: dict[str, Any]) -> Any:
    """Actions within the bounds of the environment: a module's may be between -1 and 1."""
    import numpy as np
    from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

    change = unsquash_action if facts.get("normalize_actions") else clip_action if facts.get("clip_actions") else None
    return np.stack([change(each, space) for each in actions]) if change is not None and len(actions) else actions
