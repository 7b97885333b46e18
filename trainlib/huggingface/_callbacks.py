"""What a ``transformers.Trainer`` logs and saves, as reports and checkpoints."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch.distributed as dist
from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from trainlib import session
from trainlib.huggingface._checkpoint import TransformersCheckpoint
from trainlib.huggingface._saved_files import collect, is_of_one_rank

__all__ = ["RayTrainReportCallback", "ReportEachStep", "ShareBestModel"]

_SUMMARY = "train_runtime"
"""What only the summary of a whole training has."""


class ReportEachStep(TrainerCallback):
    """Reports what is logged, evaluated and saved. All that happens at one step is one report.

    A report is made when the next step begins: evaluating and saving follow logging. That of the last step is made with the
    summary of the whole training: what the Trainer does next may remove what it saved last.
    """

    def __init__(self) -> None:
        self._metrics: dict[str, Any] = {}
        self._saved: Path | None = None

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any) -> None:
        self._metrics |= {**(logs or {}), "step": state.global_step, "epoch": state.epoch}
        if _SUMMARY in self._metrics:
            self._report(args, state)

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._saved = _folder_of(args, state)
        collect(self._saved)
        self._metrics |= {"step": state.global_step, "epoch": state.epoch}

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._report(args, state)

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._report(args, state)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._report(args, state)
        _remove_saved(args, needed=set())

    def _report(self, args: Any, state: Any) -> None:
        metrics, saved = self._metrics, self._saved
        if not metrics:
            return
        self._metrics, self._saved = {}, None
        # Other ranks have only their parts of it, and only rank 0's checkpoint is kept.
        has_it = saved is not None and session.get_world_rank() == 0
        session.report(metrics, checkpoint=TransformersCheckpoint.from_directory(saved) if has_it else None)  # type: ignore[arg-type]
        if saved is not None:
            _remove_saved(args, needed=_best_so_far(args, state))


class ShareBestModel(TrainerCallback):
    """Gives all ranks the model that rank 0 has loaded with ``load_best_model_at_end``.

    Rank 0 saves it, and the others, which have working directories of their own, go on with their last one. For models that
    are whole on each rank.
    """

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        if not (args.load_best_model_at_end and dist.is_initialized() and dist.get_world_size() > 1):
            return
        saved = model.state_dict(keep_vars=True)
        # Not all of the saved state: modules may add what is no tensor. Nor buffers that are not saved: ranks may fill them differently.
        for name, tensor in itertools.chain(model.named_parameters(), model.named_buffers()):
            if name in saved:
                dist.broadcast(tensor.detach(), src=0)


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


def _best_so_far(args: Any, state: Any) -> set[Path]:
    """Where the best model so far is. A Trainer compares other folders with it, and may load it at the end."""
    named = [Path(state.best_model_checkpoint)] if state.best_model_checkpoint else []
    # Ranks that save only a part of it learn at the next save that it is there.
    named.append(Path(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"))
    return {each.resolve() for each in named}


def _remove_saved(args: Any, needed: set[Path]) -> None:
    """Remove what a Trainer has saved in the working directory of its rank, in this attempt or an earlier one, once it was reported."""
    if not is_of_one_rank(args.output_dir):
        return
    for saved in Path(args.output_dir).resolve().glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if saved not in needed:
            shutil.rmtree(saved, ignore_errors=True)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
