"""What the next attempt at a training is to do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from trainlib._execution.plan import AttemptPlan
from trainlib._execution.worker_session import Assignment
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.run import RegisteredRun
from trainlib.checkpoint import Checkpoint
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib.trainer import DataParallelTrainer

__all__ = ["plan_attempt", "trial_id_of"]


def plan_attempt(
    number: int,
    trainer: DataParallelTrainer,
    run: RegisteredRun,
    *,
    resume_from: SavedCheckpoint | None,
    in_step: bool,
    ingest: Ingest | None,
) -> AttemptPlan:
    """Plan an attempt.

    Args:
        number: Which attempt it is, from 1.
        trainer: What to train.
        run: Where it is recorded.
        resume_from: The newest checkpoint of the training, if there is one.
        in_step: Whether each report waits on all ranks until it is known that the training goes on.
        ingest: The data, if the trainer was given any.
    """
    checkpoint = as_checkpoint(resume_from) if resume_from is not None else trainer.resume_from_checkpoint
    assignment = Assignment(
        context=TrainContext(
            trial_name=run.name,
            trial_id=trial_id_of(run),
            trial_dir=str(run.log_dir),
            trial_resources=trainer.scaling_config.worker_resources,
            experiment_name=run.experiment_name,
            storage_path=run.artifact_root,
            run_id=run.run_id,
        ),
        iterations_done=resume_from.iteration if resume_from is not None else 0,
        next_checkpoint=resume_from.index + 1 if resume_from is not None else _number_of(checkpoint),
        resume_from=checkpoint,
        checkpoint_config=trainer.run_config.checkpoint_config,
        staging=run.checkpoints.make_staging_folder(),
        shares_disk=run.checkpoints.is_local,
        in_step=in_step,
        environment=run.store.environment,
        import_path=[os.path.abspath(path) for path in sys.path],
    )
    return AttemptPlan(
        number=number,
        scaling=trainer.scaling_config,
        backend=trainer.backend_config,
        function=trainer.bound_function(),
        assignment=assignment,
        spares=trainer.run_config.failure_config.max_failures != 0,
        ingest=ingest,
    )


def trial_id_of(run: RegisteredRun) -> str:
    """The short id by which training functions and callbacks know a training."""
    return run.run_id[:8]


def _number_of(checkpoint: Checkpoint | None) -> int:
    """The number of a checkpoint that a training starts from: it counts on from there, as Ray's guide shows."""
    if checkpoint is None:
        return 0
    kind, held = checkpoint.get_internal_representation()
    if kind == "dict":
        return int(held.get("_current_checkpoint_id", 0))
    name = str(held).rstrip("/").rsplit("/", 1)[-1]
    number = name.removeprefix("checkpoint_")
    return int(number) if number != name and number.isdigit() else 0
