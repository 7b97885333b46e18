"""What stands between an environment and an algorithm's module: noted in a checkpoint, so that its module can act without the algorithm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trainlib._pickling import dump
from trainlib.rl._served import CONNECTORS_FILE, SERVED_FILE

__all__ = ["write_acting"]

_RLLIBS = frozenset(
    {
        "AddObservationsFromEpisodesToBatch",
        "AddStatesFromEpisodesToBatch",
        "AddTimeDimToBatchAndZeroPad",
        "AgentToModuleMapping",
        "BatchIndividualItems",
        "NumpyToTensor",
    }
)
"""The connectors that RLlib adds by itself. They make batches of observations, and leave these as they are."""


def write_acting(algorithm: Any, folder: str) -> None:
    """Write into the folder of a checkpoint how its module chooses actions: see :mod:`trainlib.rl._served`."""
    config = algorithm.config
    pieces = [piece for piece in _env_to_module(algorithm) if type(piece).__name__ not in _RLLIBS]
    others = [
        name
        for name in ("module_to_env_connector", *(() if config.is_online else ("learner_connector",)))
        if getattr(config, f"_{name}", None) is not None
    ]
    facts = {
        "normalize_actions": bool(config.normalize_actions),
        "clip_actions": bool(config.clip_actions),
        "is_recurrent": _is_recurrent(algorithm),
        "connectors": [*(type(piece).__name__ for piece in pieces), *others],
    }
    Path(folder, SERVED_FILE).write_text(json.dumps(facts))
    if pieces:
        with open(Path(folder, CONNECTORS_FILE), "wb") as file:
            dump(pieces, file)


def _env_to_module(algorithm: Any) -> list[Any]:
    """The connectors of observations, with the state in which RLlib itself would save them."""
    if not algorithm.config.is_online:
        return []
    runner = algorithm.env_runner
    pipeline = runner._env_to_module if runner is not None else getattr(algorithm, "env_to_module_connector", None)
    return list(pipeline.connectors) if pipeline is not None else []


def _is_recurrent(algorithm: Any) -> bool:
    found = algorithm.learner_group.foreach_learner(
        lambda learner: any(module.unwrapped().is_stateful() for _, module in learner.module.items())
    )
    return any(each.get() for each in found if each.ok)
