"""A Lightning callback that reports and saves."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any, ClassVar

from trainlib import session
from trainlib.lightning._package import OfLightning
from trainlib.torch._checkpoint import TorchCheckpoint
from trainlib.torch._served import LIGHTNING_FILE

__all__ = ["RayTrainReportCallback"]


class RayTrainReportCallback(OfLightning):
    """At the end of each training epoch, reports what was logged, with a checkpoint of Lightning's in ``checkpoint.ckpt``.

    Metrics are those of ``trainer.callback_metrics``, i.e. of ``self.log(...)``, with ``epoch`` and ``step``. Rank 0's are
    recorded: log with ``sync_dist=True`` what is to be a mean over all ranks. To resume after a lost worker, pass the newest checkpoint to ``fit``:

    Example:
        >>> from trainlib import session
        >>> from trainlib.lightning import RayTrainReportCallback
        >>> def train_func():
        ...     checkpoint = session.get_checkpoint()
        ...     if checkpoint is None:
        ...         return trainer.fit(model, train_loader)
        ...     with checkpoint.as_directory() as folder:
        ...         return trainer.fit(model, train_loader, ckpt_path=f"{folder}/{RayTrainReportCallback.CHECKPOINT_NAME}")
    """

    extends: ClassVar[str] = "callbacks:Callback"
    CHECKPOINT_NAME: ClassVar[str] = LIGHTNING_FILE

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Lightning starts to train."""
        running = session.current("RayTrainReportCallback")
        if running.resume_from is None or running.checkpoint_was_asked_for or running.context.world_rank:
            return
        warnings.warn(
            "There is a checkpoint to go on from, but this training starts from the beginning. Pass it to Lightning: "
            "trainer.fit(..., ckpt_path=...), with the file checkpoint.ckpt of session.get_checkpoint()",
            stacklevel=2,
        )

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Lightning ends an epoch, with its validation."""
        metrics = {name: value.item() for name, value in trainer.callback_metrics.items() if value.numel() == 1}
        saved = TorchCheckpoint._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-lightning-"))
        # A collective, though rank 0 alone writes. Not the weights alone: a retry goes on with the optimizer's state.
        trainer.save_checkpoint(Path(saved.path, self.CHECKPOINT_NAME), weights_only=False)
        session.report(
            {**metrics, "epoch": trainer.current_epoch, "step": trainer.global_step},
            checkpoint=saved if trainer.is_global_zero else None,
        )
