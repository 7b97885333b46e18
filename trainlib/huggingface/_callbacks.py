"""What a ``transformers.Trainer`` logs and saves, as reports and checkpoints."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from trainlib import session
from trainlib.huggingface._checkpoint import TransformersCheckpoint
from trainlib.huggingface._saved_files import collect

__all__ = ["RayTrainReportCallback", "ReportEachStep"]


class ReportEachStep(TrainerCallback):
    """Reports what is logged, evaluated and saved. All that happens at one step is one report.

    A report is made when the next step begins: evaluating and saving follow logging, and the summary of the whole training
    follows its last step.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, Any] = {}
        self._saved: Path | None = None

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any) -> None:
        self._metrics |= {**(logs or {}), "step": state.global_step, "epoch": state.epoch}

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._saved = _folder_of(args, state)
        collect(self._saved)
        self._metrics |= {"step": state.global_step, "epoch": state.epoch}

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._report(args)

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._report(args)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._report(args)

    def _report(self, args: Any) -> None:
        metrics, saved = self._metrics, self._saved
        if not metrics:
            return
        self._metrics, self._saved = {}, None
        # Other ranks have only their parts of it, and nobody asks for theirs.
        has_it = saved is not None and session.get_world_rank() == 0
        session.report(metrics, checkpoint=TransformersCheckpoint.from_directory(saved) if has_it else None)  # type: ignore[arg-type]
        if saved is not None and _is_nobody_elses(saved, args):
            shutil.rmtree(saved, ignore_errors=True)


class RayTrainReportCallback(TrainerCallback):
    """Reports a checkpoint whenever a ``transformers.Trainer`` saves one, with the latest value of each metric it has logged.

    The files of the Trainer are in the folder ``checkpoint`` of the checkpoint: resume with
    ``trainer.train(resume_from_checkpoint=os.path.join(folder, "checkpoint"))``. Evaluate as often as you save, or the metrics
    are those of an earlier step.

    Example:
        >>> import transformers
        >>> from trainlib import ScalingConfig
        >>> from trainlib.huggingface.transformers import RayTrainReportCallback, prepare_trainer
        >>> from trainlib.torch import TorchTrainer
        >>> def train_func():
        ...     trainer = transformers.Trainer(model=model, args=args, train_dataset=rows)
        ...     trainer.add_callback(RayTrainReportCallback())
        ...     trainer = prepare_trainer(trainer)
        ...     checkpoint = session.get_checkpoint()
        ...     if checkpoint is None:
        ...         trainer.train()
        ...     else:
        ...         with checkpoint.as_directory() as folder:
        ...             trainer.train(resume_from_checkpoint=os.path.join(folder, RayTrainReportCallback.CHECKPOINT_NAME))
        >>> trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
        >>> isinstance(RayTrainReportCallback(), transformers.TrainerCallback)
        True
    """

    CHECKPOINT_NAME = "checkpoint"

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        saved = _folder_of(args, state)
        collect(saved)
        metrics = {name: value for logged in state.log_history for name, value in logged.items()}
        if session.get_world_rank() > 0:
            session.report(metrics)
            return
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(saved, Path(folder, self.CHECKPOINT_NAME), copy_function=_link_or_copy)
            session.report(metrics, checkpoint=TransformersCheckpoint.from_directory(folder))


def _folder_of(args: Any, state: Any) -> Path:
    """Where a Trainer has saved its present state."""
    return Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}").absolute()


def _is_nobody_elses(saved: Path, args: Any) -> bool:
    """Whether a saved state can go once it was reported: it is in the worker's own folder, and the Trainer itself will not load it."""
    return saved.is_relative_to(Path.cwd()) and not args.load_best_model_at_end


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
