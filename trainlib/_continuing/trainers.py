"""The trainers and tuners that continue recorded trainings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib._continuing.recorded import RecordedTrainer, StartingPoint
from trainlib._settings import TrainerSettings
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    from trainlib.trainer import DataParallelTrainer
    from trainlib.tune import Tuner

__all__ = ["forked", "require_training", "resumed"]


def resumed(
    recorded: RecordedTrainer, config: dict[str, Any] | None = None, **changes: Any
) -> DataParallelTrainer | Tuner:
    """The trainer or tuner of a run, which continues it.

    Args:
        recorded: What the run keeps of it.
        config: Its config or search space with its secrets put back. None if it has none.
        changes: Arguments of the trainer that are different now. A tuner takes none.
    """
    from trainlib import _rooms as rooms
    from trainlib.tune import Tuner

    run_id, settings = recorded.run_id, recorded.settings
    if isinstance(settings, TrainerSettings):
        if config is not None:
            changes = {**settings.arguments_for_config(config), **changes}
        return rooms.room_of(settings.backend_config).trainer_class().restore(run_id, **changes)
    return Tuner.restore(run_id, param_space=config) if config is not None else Tuner.restore(run_id)


def forked(
    start: StartingPoint, settings: TrainerSettings, config: dict[str, Any], name: str | None = None, **changes: Any
) -> DataParallelTrainer:
    """A new training that starts from the checkpoint of another one, with other settings.

    Args:
        start: The checkpoint.
        settings: Those of the training that saved it.
        config: What the training function is called with now.
        name: The name of the new run. Default: that of the old one, marked as a fork.
        changes: Other arguments of the trainer that are different now.
    """
    from trainlib import _rooms as rooms
    from trainlib._registry import tags
    from trainlib._registry.checkpoints import as_checkpoint
    from trainlib.callbacks import MLflowLoggerCallback

    mark = MLflowLoggerCallback(tags={tags.FORKED_FROM: start.checkpoint.model_id})
    run_config = settings.run_config.model_copy(
        update={"name": name or f"{start.run_name} · fork of {start.run_id[:8]}", "callbacks": [mark]}
    )
    called_with = settings.arguments_for_config(config if config or settings.train_loop_config is not None else None)
    return (
        rooms.room_of(settings.backend_config)
        .trainer_class()
        .from_settings(
            settings.unpacked(called_with),
            **called_with,
            run_config=run_config,
            resume_from_checkpoint=as_checkpoint(start.checkpoint),
            **changes,
        )
    )


def require_training(recorded: RecordedTrainer, source: str) -> TrainerSettings:
    """The settings of a training.

    Raises:
        InvalidArgumentError: it is a sweep.
    """
    if not isinstance(recorded.settings, TrainerSettings):
        raise InvalidArgumentError(f"{source!r} is a sweep: fork a training")
    return recorded.settings
