"""What each worker of a TransformersTrainer runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib.errors import InvalidArgumentError
from trainlib.huggingface._checkpoint import model_folder

if TYPE_CHECKING:
    import transformers

    from trainlib.checkpoint import Checkpoint

__all__ = ["EVALUATION", "TRAIN", "train_transformers"]

TRAIN, EVALUATION = "train", "evaluation"
"""The names of the datasets."""
_STATE_FILE = "trainer_state.json"


def train_transformers(config: dict[str, Any]) -> None:
    """Build the worker's ``transformers.Trainer`` on its shard, and train with it from the newest checkpoint on."""
    from transformers.utils import logging

    from trainlib.huggingface._shard_rows import rows_of

    logging.disable_progress_bar()  # it is no terminal, and reports are shown anyway
    make = config["trainer_init_per_worker"]
    trainer = make(rows_of(TRAIN), rows_of(EVALUATION), **(config.get("trainer_init_config") or {}))
    _prepare(trainer, make)
    checkpoint = session.get_checkpoint()
    if checkpoint is None:
        trainer.train()
    else:
        _resume(trainer, checkpoint)


def _prepare(trainer: Any, make: Any) -> None:
    import transformers

    from trainlib.huggingface._callbacks import ReportEachStep
    from trainlib.huggingface._loaders import prepare_trainer

    name = getattr(make, "__name__", "trainer_init_per_worker")
    if not isinstance(trainer, transformers.Trainer):
        raise InvalidArgumentError(
            f"{name} returned a {type(trainer).__name__}: it has to return the transformers.Trainer that it builds"
        )
    if trainer.train_dataset is None:
        raise ValueError(
            f"the transformers.Trainer that {name} returned has no train_dataset. Pass the train_dataset that {name} is called "
            'with, which is datasets={"train": ...} of the trainer, or load one in it'
        )
    if session.get_world_size() > 1 and trainer.args.world_size != session.get_world_size():
        raise ValueError(
            f"the transformers.Trainer that {name} returned trains on {trainer.args.world_size} process(es), but there are "
            f"{session.get_world_size()} workers: they would not average their gradients. Build the TrainingArguments inside of "
            f"{name}, and use_cpu=True only if no worker has a GPU"
        )
    for shows in (transformers.ProgressCallback, transformers.PrinterCallback):
        trainer.remove_callback(shows)
    trainer.add_callback(ReportEachStep())
    prepare_trainer(trainer)


def _resume(trainer: transformers.Trainer, checkpoint: Checkpoint) -> None:
    with checkpoint.as_directory() as directory:
        folder = model_folder(Path(directory))
        if (folder / _STATE_FILE).exists():
            # The random numbers' state is read from it when the first batch is there, so it is needed until then.
            trainer.train(resume_from_checkpoint=str(folder))
            return
        _load_weights(trainer.model, folder)
    trainer.train()


def _load_weights(model: Any, folder: Path) -> None:
    """Start from the weights of a model that no Trainer has saved."""
    saved = type(model).from_pretrained(folder, local_files_only=True)
    model.load_state_dict(saved.state_dict())
