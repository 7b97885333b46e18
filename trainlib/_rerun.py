"""Running a training again, as it was: ``trainlib rerun``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib._registry.client import connect
from trainlib._registry.environment import Environment
from trainlib._registry.finding import find_run, load_trainer
from trainlib._registry.kept_files import ENVIRONMENT
from trainlib._registry.seeds import has_known_seeds
from trainlib._registry.store import current_store
from trainlib._settings import TrainerSettings
from trainlib._training.opening import fingerprint_of
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mlflow.entities import Run

    from trainlib.trainer import DataParallelTrainer

__all__ = ["Rerun", "plan_rerun"]


@dataclass(frozen=True)
class Rerun:
    """A training that can be run again."""

    trainer: DataParallelTrainer
    run_id: str
    """The run that it repeats."""
    changes: list[str]
    """What is no longer as it was, in words."""
    remarks: list[str]
    """What nobody can know, in words: whether it will be the same."""


def plan_rerun(run: str, name: str | None = None, config: dict[str, Any] | None = None) -> Rerun:
    """The trainer of a run that was made before, as a new training, and what has changed since.

    Args:
        run: The id or the name of its MLflow run.
        name: The name of the new run. Default: that of the old one, marked as a rerun.
        config: Its ``train_loop_config``, if a secret in it was not saved.

    Raises:
        RunNotFoundError: there is no such run, or no trainer made it.
        InvalidArgumentError: it is a sweep.
        ValueError: a dataset or a secret was not saved with it.
    """
    from trainlib import _rooms as rooms

    run_id, data = load_trainer(run)
    settings = cloudpickle.loads(data)
    if not isinstance(settings, TrainerSettings):
        raise InvalidArgumentError(f"{run!r} is a sweep: run one of its trials again, or the script of the sweep")
    store = current_store()
    with store.in_use():
        found = find_run(connect(store), run_id)
        recorded = ENVIRONMENT.load(found.info.artifact_uri)
    name = name or f"{found.info.run_name} · rerun of {run_id[:8]}"
    changes: dict[str, Any] = {} if config is None else settings.arguments_for_config(config)
    trainer = (
        rooms.load(settings.backend_config.framework)
        .trainer_class()
        .from_settings(
            settings.unpacked(changes), run_config=settings.run_config.model_copy(update={"name": name}), **changes
        )
    )
    differences = _changes_around(recorded) + _changes_inside(trainer, found)
    return Rerun(trainer, run_id, differences, _remarks_on(found))


def _remarks_on(run: Run) -> list[str]:
    if has_known_seeds(run.data.tags, run.data.params):
        return []
    return [
        "No seed of it is known. If its function draws random numbers, they will be other ones: set a seed, e.g. with "
        "trainlib.torch.enable_reproducibility(seed)."
    ]


def _changes_around(recorded: bytes | None) -> list[str]:
    if recorded is None:
        return ["what it ran with was not recorded: an older trainlib made it"]
    return Environment.loads(recorded).differences(Environment.here())


def _changes_inside(trainer: DataParallelTrainer, run: Run) -> list[str]:
    """What differs in the code of its function, its config, or its data."""
    different = fingerprint_of(trainer, trainer.inspect_data()).differences(run.data.tags, run.data.params)
    return [f"its {what} differs from what it was" for what in different]
