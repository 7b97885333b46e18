"""Checkpoints of torch models."""

from __future__ import annotations

import pickle
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
        """A checkpoint of a model's weights. The prefix that DistributedDataParallel adds is removed."""
        return cls._save(_plain(state_dict))

    @classmethod
    def from_model(cls, model: torch.nn.Module) -> TorchCheckpoint:
        """A checkpoint of a whole model. Its class is pickled with it."""
        return cls._save(getattr(model, "module", model))

    @classmethod
    def _save(cls, what: Any) -> TorchCheckpoint:
        import torch

        folder = tempfile.mkdtemp(prefix="trainlib-torch-")
        torch.save(what, Path(folder) / _FILE)
        made = cls(folder)
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)  # report() makes its own copy
        return made

    def get_model(self, model: torch.nn.Module | None = None) -> torch.nn.Module:
        """The model. A checkpoint of a state dict needs a ``model`` to load it into.

        Raises:
            UntrustedCheckpointError: it is a whole model, with code, of somebody who is not known to be trusted.
        """
        import torch

        with self.as_directory() as folder:
            try:
                saved = torch.load(Path(folder) / _FILE, weights_only=True, map_location="cpu")
            except pickle.UnpicklingError:  # there is more in it than weights
                self.require_trust()
                saved = torch.load(Path(folder) / _FILE, weights_only=False, map_location="cpu")
        if isinstance(saved, torch.nn.Module):
            return saved
        if model is None:
            raise ValueError(
                "this checkpoint holds a state dict, not a model: pass the model to load it into, get_model(model)"
            )
        model.load_state_dict(saved)
        return model


def _plain(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("module."): value for key, value in state_dict.items()}
