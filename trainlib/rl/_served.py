"""Chooses actions with a checkpoint of an RLlib algorithm, also where trainlib is not installed.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import as_array

if TYPE_CHECKING:
    import pandas as pd

MODULES = "learner_group/learner/rl_module"
"""Where an algorithm's checkpoint has its modules."""
SERVED_FILE = "served.json"


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can."""
    found = _modules_in(folder)
    if not found:
        return "it has no module that chooses actions"
    if len(found) > 1:
        return f"it has several modules, {', '.join(each.name for each in found)}: which one acts, only the environment knows"
    return None


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What chooses actions with the module in a folder: for each row the action that it holds for the best.

    The observation is the column of arrays, if there is one, else all columns, in their order.
    """
    import torch
    from ray.rllib.core.rl_module.rl_module import RLModule

    if (problem := why_not(folder)) is not None:
        raise ValueError(f"this checkpoint cannot predict by itself: {problem}")
    module: Any = RLModule.from_checkpoint(str(_modules_in(folder)[0]))
    file = Path(folder, SERVED_FILE)
    served = json.loads(file.read_text()) if file.exists() else {}

    def predict(rows: pd.DataFrame) -> Any:
        observations = torch.as_tensor(as_array(rows)).to(torch.float32)
        with torch.inference_mode():
            outputs = module.forward_inference({"obs": observations})
        if "actions" in outputs:
            actions = outputs["actions"]
        else:
            spread = module.get_inference_action_dist_cls().from_logits(outputs["action_dist_inputs"])
            actions = spread.to_deterministic().sample()
        return _for_environment(actions.numpy(), module.action_space, served)

    return predict


def _modules_in(folder: str) -> list[Path]:
    root = Path(folder, MODULES)
    return sorted(each for each in root.iterdir() if each.is_dir()) if root.is_dir() else []


def _for_environment(actions: Any, space: Any, served: dict[str, bool]) -> Any:
    """Actions within the bounds of the environment: a module's may be between -1 and 1."""
    import numpy as np
    from ray.rllib.utils.spaces.space_utils import clip_action, unsquash_action

    change = unsquash_action if served.get("normalize_actions") else clip_action if served.get("clip_actions") else None
    return np.stack([change(each, space) for each in actions]) if change is not None else actions
