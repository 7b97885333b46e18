"""The training function of RLTrainer: builds an algorithm, and reports each of its iterations."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from trainlib import session
from trainlib._autofilled import FILLED_IN
from trainlib._execution.reported import is_number
from trainlib.rl._algorithms import algorithm_config
from trainlib.rl._checkpoint import RLCheckpoint
from trainlib.rl._offline import write_parquet
from trainlib.rl._rllib import leave_out_lines

__all__ = ["metrics_of", "train_algorithm", "until_it_ends"]

_LEFT_OUT = FILLED_IN | {"timers", "num_training_step_calls_per_iteration"}
"""What is filled in anyway, and RLlib's timers of its own steps, of which there are a hundred."""
_TIMER = "_timer"
_FIRST = ("env_runners", "evaluation", "episode_return_mean", "episode_len_mean")
"""What people look at first: the line of progress shows only some metrics."""


def train_algorithm(config: dict[str, Any]) -> None:
    """Train until somebody says stop: an algorithm has no end of its own.

    Args:
        config: RLTrainer's own arguments, its ``scaling_config``, and whether it is ``offline``, i.e. has a dataset.
    """
    leave_out_lines()
    with tempfile.TemporaryDirectory(prefix="trainlib-rl-") as folder:
        steps = session.get_dataset_shard("train") if config["offline"] else None
        offline = write_parquet(steps, Path(folder)) if steps is not None else None
        made = algorithm_config(config["algorithm"], config.get("config", {}), config["scaling_config"], offline)
        algorithm = _built(made, folder)
        until_it_ends(partial(_iterate, algorithm), algorithm.stop)


def until_it_ends(iterate: Callable[[], NoReturn], stop: Callable[[], None]) -> NoReturn:
    """Train until an exception ends that, stop the algorithm, and raise the exception: also if stopping fails, too.

    An algorithm that fails often cannot be stopped either, and only the first of both says why.
    """
    try:
        iterate()
    except BaseException as error:
        ended_by = error
    try:
        stop()  # not while an error is handled: RLlib would log that as one of its own
    finally:
        raise ended_by


def _iterate(algorithm: Any) -> NoReturn:
    running = session.current("RLTrainer")
    config = running.checkpoint_config
    every = config.checkpoint_frequency or 1
    save = partial(RLCheckpoint.from_algorithm, algorithm)
    # If each iteration is saved, nobody has to wait for one more.
    when_stopped = save if every > 1 and config.checkpoint_at_end is not False else None
    checkpoint = session.get_checkpoint()
    if checkpoint is not None:
        RLCheckpoint.from_checkpoint(checkpoint).restore(algorithm)
    while True:
        metrics = metrics_of(algorithm.train())
        is_due = algorithm.iteration % every == 0
        running.report(metrics, save() if is_due else None, when_stopped=when_stopped)


def _built(config: Any, folder: str) -> Any:
    """The algorithm, with its own files in a folder. By default, RLlib would leave one in the user's home for every algorithm."""
    from ray.tune.trainable import trainable

    trainable.DEFAULT_STORAGE_PATH = folder  # type: ignore[misc, attr-defined]
    return config.build_algo()


def metrics_of(result: Mapping[str, Any]) -> dict[str, Any]:
    """What is worth recording of an iteration: RLlib's numbers, under its names. An average over nothing is left out.

    Example:
        >>> metrics_of({"env_runners": {"episode_return_mean": 21.5, "timers": {"step": 1.0}}, "config": {}, "pid": 7})
        {'env_runners': {'episode_return_mean': 21.5}}
    """
    numbers: dict[str, Any] = {}
    names = [*(name for name in _FIRST if name in result), *(name for name in result if name not in _FIRST)]
    for name in names:
        value = result[name]
        if name in _LEFT_OUT or str(name).endswith(_TIMER):
            continue
        if isinstance(value, Mapping):
            if inner := metrics_of(value):
                numbers[str(name)] = inner
        elif is_number(value) and not math.isnan(value):
            numbers[str(name)] = value
    return numbers
