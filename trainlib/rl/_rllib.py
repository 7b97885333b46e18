"""Importing RLlib without what it does to TensorFlow."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["tensorflow_left_alone"]

_SWITCH = "RLLIB_TEST_NO_TF_IMPORT"
"""With this variable, RLlib does without TensorFlow, and warns of that."""
_WARN = ("ray.rllib.utils.framework", "ray.rllib.algorithms.algorithm_config")
"""Who warns: of that, and that an algorithm runs on the API that is the default."""


@contextmanager
def tensorflow_left_alone() -> Iterator[None]:
    """Let RLlib's modules be imported without TensorFlow.

    They would import it where it is installed, which takes seconds, and switch its eager mode off for the whole process: whoever
    trains with TensorFlow next would find it broken. A process that only describes an algorithm does not need it.
    """
    was_set = _SWITCH in os.environ
    levels = {log: log.level for log in map(logging.getLogger, _WARN)}
    os.environ.setdefault(_SWITCH, "1")
    for log in levels:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for log, level in levels.items():
            log.setLevel(level)
        if not was_set:
            del os.environ[_SWITCH]
