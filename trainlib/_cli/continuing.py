"""``resume``, ``fork`` and ``rerun``: what they make of the options of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib._cli.exit_codes import RefusedError
from trainlib._cli.overrides import changed, with_secrets
from trainlib._continuing.config_changes import lost_secrets

if TYPE_CHECKING:
    from trainlib._rerun import Rerun
    from trainlib.trainer import DataParallelTrainer
    from trainlib.tune import Tuner

__all__ = ["forked", "make_scripts_importable", "planned_rerun", "resumed"]


def resumed(run: str, secrets: Sequence[str], *, anyway: bool) -> DataParallelTrainer | Tuner:
    """The trainer or tuner of a run, which continues it.

    Args:
        run: The run.
        secrets: What was not saved, each as ``key=VARIABLE``.
        anyway: Whether to continue a run that has finished.

    Raises:
        RunNotFoundError: there is no such run, or no trainer made it.
        RefusedError: it has finished, or lacks a secret.
    """
    from trainlib._continuing.recorded import load_recorded
    from trainlib._continuing.trainers import resumed as resumed_trainer

    recorded = load_recorded(run)
    if not anyway:
        _require_unfinished(recorded.run_id)
    config = _complete(recorded.config, secrets, f"trainlib resume {run}")
    return resumed_trainer(recorded, config if secrets else None)


def forked(
    source: str, changes: Sequence[str], secrets: Sequence[str], *, add: bool = False, name: str | None = None
) -> DataParallelTrainer:
    """A new training that starts from the checkpoint of another one, with other settings.

    Args:
        source: A run, whose newest checkpoint is taken, or the id of a checkpoint.
        changes: The settings to change, each as ``key=value``.
        secrets: What was not saved, each as ``key=VARIABLE``.
        add: Whether settings may be new.
        name: The name of the new run. Default: that of the old one, marked as a fork.

    Raises:
        RunNotFoundError: there is no such run, or no trainer made it.
        CheckpointNotFoundError: there is no such checkpoint, or the run has none.
        RefusedError: it lacks a secret.
    """
    from trainlib._continuing.recorded import load_recorded, starting_point
    from trainlib._continuing.trainers import forked as forked_trainer
    from trainlib._continuing.trainers import require_training

    start = starting_point(source)
    settings = require_training(load_recorded(start.run_id), source)
    config = _complete(settings.train_loop_config, secrets, f"trainlib fork {source}", given=changes)
    return forked_trainer(start, settings, changed(config, changes, add=add), name)


def planned_rerun(run: str, name: str | None, secrets: Sequence[str]) -> Rerun:
    """A run as a new training, exactly as it was, and what has changed since.

    Raises:
        RunNotFoundError: there is no such run, or no trainer made it.
        RefusedError: it lacks a secret.
    """
    from trainlib._continuing.recorded import load_recorded
    from trainlib._rerun import plan_rerun
    from trainlib._settings import TrainerSettings

    recorded = load_recorded(run)
    config = None
    if isinstance(recorded.settings, TrainerSettings):
        config = _complete(recorded.config, secrets, f"trainlib rerun {run}")
    return plan_rerun(recorded.run_id, name, config if secrets else None)


def make_scripts_importable() -> None:
    """Let modules in the working directory be imported, as they are for a script that is started there."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def _require_unfinished(run_id: str) -> None:
    from trainlib._continuing.recorded import state_of
    from trainlib._registry.listing import RunState

    _, name, state = state_of(run_id)
    if state is RunState.FINISHED:
        raise RefusedError(
            f"{name!r} (MLflow run {run_id}) has finished. To go on with other settings, use `trainlib fork`; to "
            "start again, `trainlib rerun`; to call its function once more in the same run, pass --anyway"
        )


def _complete(
    config: Mapping[str, Any] | None, secrets: Sequence[str], command: str, given: Sequence[str] = ()
) -> dict[str, Any]:
    """A config with its secrets put back.

    Raises:
        RefusedError: one is missing, which ``given`` does not set either.
    """
    complete = with_secrets(config, secrets)
    lost = lost_secrets(complete, {change.partition("=")[0] for change in given})
    if lost.keys:
        options = " ".join(f"--secret {key}=VARIABLE" for key in lost.keys)
        raise RefusedError(
            f"{', '.join(lost.keys)} {'were' if len(lost.keys) > 1 else 'was'} not saved, being secret. Put it into an environment "
            f"variable, and name that: {command} {options}"
        )
    if lost.in_lists:
        raise RefusedError(
            f"{', '.join(lost.in_lists)} in the config {'were' if len(lost.in_lists) > 1 else 'was'} not saved, being secret, and "
            "no option reaches into a list. Do it in Python: restore(..., train_loop_config={...})"
        )
    return complete
