"""The seeds of a training's random numbers, as far as they are known."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from trainlib._registry.tags import SEEDS

__all__ = ["has_known_seeds", "seed_tags"]

_SEED = re.compile(r"(?<![a-z])seeds?(?![a-z])")


def seed_tags(by_rank: Mapping[int, int]) -> dict[str, str]:
    """The tag for the seeds that ranks have set.

    Example:
        >>> seed_tags({1: 8, 0: 7})
        {'trainlib.seeds': '{"0": 7, "1": 8}'}
    """
    return {SEEDS: json.dumps({str(rank): by_rank[rank] for rank in sorted(by_rank)})}


def has_known_seeds(tags: Mapping[str, str], params: Mapping[str, str]) -> bool:
    """Whether a seed of a training is known: its ranks have set one, or its config has one.

    Example:
        >>> has_known_seeds({}, {"lr": "0.1", "model.random_seed": "1"}), has_known_seeds({}, {"seedling": "1"})
        (True, False)
    """
    return SEEDS in tags or any(_SEED.search(name.lower()) and value != "None" for name, value in params.items())
