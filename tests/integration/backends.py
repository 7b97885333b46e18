"""The frameworks, as the suite that they share sees them: what each room declares, and what its tests bring along."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tests.integration.frameworks.regression import COLLECTIVE_TIMEOUT_S, fit_in_one_process
from trainlib import DataParallelTrainer, RunConfig, ScalingConfig
from trainlib import _rooms as rooms

__all__ = ["BACKENDS", "COLLECTIVE_TIMEOUT_S", "FITS", "collective", "fit_in_one_process", "of", "trainer"]

BACKENDS = [name for name in rooms.ROOMS if rooms.load(name).averages_gradients]


def of(backend: str) -> Any:
    """The framework's module in :mod:`tests.integration.frameworks`."""
    return importlib.import_module(f"tests.integration.frameworks.{backend}")


FITS = {name: fit for backend in BACKENDS for name, fit in of(backend).FITS.items()}


def trainer(
    backend: str,
    function: Callable[[dict], Any],
    *,
    scaling_config: ScalingConfig | None = None,
    run_config: RunConfig | None = None,
    **config: Any,
) -> DataParallelTrainer:
    """A trainer of a backend that finds out soon about collectives that hang."""
    room = rooms.load(backend)
    return room.trainer_class()(
        function,
        train_loop_config={"backend": backend, **config},
        scaling_config=scaling_config or ScalingConfig(num_workers=2),
        run_config=run_config or RunConfig(),
        **{room.config_argument: of(backend).SETTINGS},
    )


def collective(backend: str) -> Callable[[float], float]:
    """Inside a training function: a function that gives the mean of its argument over all ranks."""
    return of(backend).collective()
