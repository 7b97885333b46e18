"""A Lightning callback that reports and saves."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainlib import session
from trainlib._ray_objects import described
from trainlib.errors import InvalidArgumentError
from trainlib.lightning._package import OfLightning
from trainlib.torch._checkpoint import TorchCheckpoint
from trainlib.torch._served import LIGHTNING_FILE

if TYPE_CHECKING:
    import torch

__all__ = ["RayTrainReportCallback"]


class RayTrainReportCallback(OfLightning):
    """At the end of each training epoch, reports what was logged, with a checkpoint of Lightning's in ``checkpoint.ckpt``.

    Metrics are those of ``trainer.callback_metrics``, i.e. of ``self.log(...)``, with ``epoch`` and ``step``. Rank 0's are
    recorded: log with ``sync_dist=True`` what is to be a mean over all ranks. To resume after a lost worker, pass the newest checkpoint to ``fit``.

    Lightning saves weights alone. With ``model``, the network that predicts is saved beside them, as by
    :meth:`trainlib.torch.TorchCheckpoint.from_model`: then ``predict`` and MLflow can use the checkpoint by itself.

    Example:
        >>> from trainlib import session
        >>> from trainlib.lightning import RayTrainReportCallback
        >>> def train_func():
        ...     checkpoint = session.get_checkpoint()
        ...     if checkpoint is None:
        ...         return trainer.fit(model, train_loader)
        ...     with checkpoint.as_directory() as folder:
        ...         return trainer.fit(model, train_loader, ckpt_path=f"{folder}/{RayTrainReportCallback.CHECKPOINT_NAME}")
        >>> callback = RayTrainReportCallback(model=lambda module: module.network)
    """

    extends: ClassVar[str] = "callbacks:Callback"
    CHECKPOINT_NAME: ClassVar[str] = LIGHTNING_FILE

    def __init__(self, *, model: Callable[[Any], torch.nn.Module] | None = None) -> None:
        """Report, and save.

        Args:
            model: Returns the network to serve, given the LightningModule. Default: none is served.

        Raises:
            InvalidArgumentError: ``model`` is no function.
        """
        super().__init__()
        if model is not None and (not callable(model) or _is_network(model)):
            raise InvalidArgumentError(
                f"model is {described(model)}: pass a function that takes the LightningModule and returns the network to serve, e.g. "
                "RayTrainReportCallback(model=lambda module: module.network)"
            )
        self._model = model

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Lightning starts to train.

        Raises:
            InvalidArgumentError: ``model`` does not return a network.
        """
        self._network(pl_module)  # so that nobody finds out only after an epoch
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
        network = self._network(pl_module) if trainer.is_global_zero else None
        if network is not None:
            saved = TorchCheckpoint.from_model(network)
        else:
            saved = TorchCheckpoint._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-lightning-"))
        # A collective, though rank 0 alone writes. Not the weights alone: a retry goes on with the optimizer's state.
        trainer.save_checkpoint(Path(saved.path, self.CHECKPOINT_NAME), weights_only=False)
        session.report(
            {**metrics, "epoch": trainer.current_epoch, "step": trainer.global_step},
            checkpoint=saved if trainer.is_global_zero else None,
        )

    def _network(self, pl_module: Any) -> torch.nn.Module | None:
        """The network to serve. None if there is to be none."""
        if self._model is None:
            return None
        found = self._model(pl_module)
        if not _is_network(found):
            raise InvalidArgumentError(
                f"model returned an object of type {type(found).__name__}, but has to return the torch.nn.Module to serve, e.g. "
                "RayTrainReportCallback(model=lambda module: module.network)"
            )
        return found


def _is_network(value: Any) -> bool:
    import torch

    return isinstance(value, torch.nn.Module)
