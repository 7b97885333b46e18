"""Using RLlib without what it does to TensorFlow, and without lines that tell a user nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["leave_out_lines", "tensorflow_left_alone"]

_SWITCH = "RLLIB_TEST_NO_TF_IMPORT"
"""With this variable, RLlib does without TensorFlow, and warns of that."""
_WARN = ("ray.rllib.utils.framework", "ray.rllib.algorithms.algorithm_config")
"""Who warns: of that, and that an algorithm runs on the API that is the default."""

_LEFT_OUT = {
    "ray.rllib.algorithms.algorithm_config": "on the new API stack!",  # and how to leave it, which RLTrainer refuses
    "ray._common.deprecation": "`RLModule(config=[RLModuleConfig object])`",  # RLlib's own use of it
    "ray.tune.utils.util": "Install gputil",  # RLTrainer does not report what it measures
}
"""Lines about which nobody can do anything: who logs them, and what is in them."""


def leave_out_lines() -> None:
    """From now on, in this process."""
    for name in _LEFT_OUT:
        logging.getLogger(name).addFilter(_is_for_users)


def _is_for_users(record: logging.LogRecord) -> bool:
    return _LEFT_OUT[record.name] not in record.getMessage()


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
