"""What the next attempt at a training is to do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from trainlib._execution.divergence import DivergenceWatch
from trainlib._execution.plan import AttemptPlan
from trainlib._execution.worker_session import Assignment
from trainlib._execution.working_directory import WorkingDirectory, present
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.run import RegisteredRun
from trainlib.checkpoint import Checkpoint
from trainlib.session import TrainContext

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib.trainer import DataParallelTrainer

__all__ = ["plan_attempt", "start_of"]


def start_of(trainer: DataParallelTrainer, newest: SavedCheckpoint | None) -> Checkpoint | None:
    """What an attempt starts from: the newest checkpoint of the training, or else what the trainer was given."""
    return as_checkpoint(newest) if newest is not None else trainer.resume_from_checkpoint


def plan_attempt(
    number: int,
    trainer: DataParallelTrainer,
    run: RegisteredRun,
    *,
    resume_from: SavedCheckpoint | None,
    in_step: bool,
    ingest: Ingest | None,
    all_ranks: bool = False,
) -> AttemptPlan:
    """Plan an attempt.

    Args:
        number: Which attempt it is, from 1.
        trainer: What to train.
        run: Where it is recorded.
        resume_from: The newest checkpoint of the training, if there is one.
        in_step: Whether each report waits on all ranks until it is known that the training goes on.
        ingest: The data, if the trainer was given any.
        all_ranks: Whether somebody wants to hear what all ranks report.
    """
    checkpoint = start_of(trainer, resume_from)
    assignment = Assignment(
        context=TrainContext(
            trial_name=run.name,
            trial_id=run.trial_id,
            trial_dir=str(run.log_dir),
            trial_resources=trainer.settings.gang.total_resources,
            experiment_name=run.experiment_name,
            storage_path=run.artifact_root,
            run_id=run.run_id,
        ),
        iterations_done=resume_from.iteration if resume_from is not None else 0,
        next_checkpoint=resume_from.index + 1
        if resume_from is not None
        else _number_of(checkpoint) or trainer.first_checkpoint,
        resume_from=checkpoint,
        checkpoint_config=trainer.run_config.checkpoint_config,
        staging=run.checkpoints.files.make_staging_folder(),
        shares_disk=run.checkpoints.files.is_local,
        in_step=in_step,
        environment=run.store.environment,
        watch=DivergenceWatch.of(trainer.run_config),
        all_ranks=all_ranks,
        import_path=[os.path.abspath(path) for path in sys.path],
        directory=_directory_of(trainer, run),
    )
    return AttemptPlan(
        number=number,
        scaling=trainer.settings.gang,
        backend=trainer.backend_config,
        function=trainer.bound_function(),
        assignment=assignment,
        spares=trainer.run_config.failure_config.max_failures != 0,
        ingest=ingest,
    )


def _directory_of(trainer: DataParallelTrainer, run: RegisteredRun) -> WorkingDirectory:
    environment = trainer.settings.gang.runtime_env
    has_other_code = environment is not None and environment.working_dir is not None
    return WorkingDirectory(
        folders=str(run.log_dir) if trainer.run_config.working_dir_per_rank else None,
        script=None if has_other_code else present(),
    )


def _number_of(checkpoint: Checkpoint | None) -> int:
    """The number of a checkpoint that a training starts from: it counts on from there, as Ray's guide shows."""
    if checkpoint is None:
        return 0
    kind, held = checkpoint.get_internal_representation()
    if kind == "dict":
        return int(held.get("_current_checkpoint_id", 0))
    if kind == "bytes":
        return 0
    name = str(held).rstrip("/").rsplit("/", 1)[-1]
    number = name.removeprefix("checkpoint_")
    return int(number) if number != name and number.isdigit() else 0
