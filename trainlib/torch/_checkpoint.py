"""Checkpoints of torch models."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib.checkpoint import Checkpoint

if TYPE_CHECKING:
    import torch

__all__ = ["TorchCheckpoint"]

_FILE = "model.pt"


class TorchCheckpoint(Checkpoint):
    """A checkpoint of a torch model or of its state dict.

    Example:
        >>> import torch
        >>> from trainlib.torch import TorchCheckpoint
        >>> saved = TorchCheckpoint.from_state_dict(torch.nn.Linear(2, 1).state_dict())
        >>> type(saved.get_model(torch.nn.Linear(2, 1))).__name__
        'Linear'
    """

    @classmethod
    def from_state_dict(cls, state_dict: dict[str, Any]) -> TorchCheckpoint:
        """Of a model's weights. The prefix that DistributedDataParallel adds is taken off."""
        return cls._saved(_plain(state_dict))

    @classmethod
    def from_model(cls, model: torch.nn.Module) -> TorchCheckpoint:
        """Of a whole model, which is pickled with its class."""
        return cls._saved(getattr(model, "module", model))

    @classmethod
    def _saved(cls, what: Any) -> TorchCheckpoint:
        import torch

        folder = tempfile.mkdtemp(prefix="trainlib-torch-")
        torch.save(what, Path(folder) / _FILE)
        made = cls(folder)
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)  # it is copied when it is reported
        return made

    def get_model(self, model: torch.nn.Module | None = None) -> torch.nn.Module:
        """The model. One that was saved as a state dict needs a ``model`` to load it into."""
        import torch

        with self.as_directory() as folder:
            saved = torch.load(Path(folder) / _FILE, weights_only=False, map_location="cpu")
        if isinstance(saved, torch.nn.Module):
            return saved
        if model is None:
            raise ValueError("this checkpoint holds a state dict: pass the model to load it into")
        model.load_state_dict(saved)
        return model


def _plain(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("module."): value for key, value in state_dict.items()}
