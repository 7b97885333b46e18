"""Checkpoints of torch models."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError
from trainlib.torch._served import FILE, KEYS, LIGHTNING_FILE

if TYPE_CHECKING:
    import torch
    from ray.data.preprocessor import Preprocessor

__all__ = ["TorchCheckpoint"]

_WRAPPERS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "DeepSpeedEngine")


class TorchCheckpoint(Checkpoint):
    """A checkpoint of a torch model or of its state dict.

    Example:
        >>> import torch
        >>> from trainlib.torch import TorchCheckpoint
        >>> saved = TorchCheckpoint.from_state_dict(torch.nn.Linear(2, 1).state_dict())
        >>> type(saved.get_model(torch.nn.Linear(2, 1))).__name__
        'Linear'
    """

    kind = "torch"

    @classmethod
    def from_state_dict(cls, state_dict: dict[str, Any], *, preprocessor: Preprocessor | None = None) -> Self:
        """A checkpoint of a model's weights. The prefix that DistributedDataParallel adds is removed.

        Args:
            state_dict: The weights.
            preprocessor: A fitted preprocessor, to be applied before predicting.
        """
        return cls._save(_plain(state_dict), preprocessor)

    @classmethod
    def from_model(cls, model: torch.nn.Module, *, preprocessor: Preprocessor | None = None) -> Self:
        """A checkpoint of a whole model. Its class is pickled with it.

        Args:
            model: The model. That inside of DistributedDataParallel or ``torch.compile`` is saved.
            preprocessor: A fitted preprocessor, to be applied before predicting.
        """
        return cls._save(_unwrapped(model), preprocessor)

    @classmethod
    def _save(cls, what: Any, preprocessor: Preprocessor | None) -> Self:
        import torch

        made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-torch-"))
        torch.save(what, Path(made.path) / FILE)
        made.set_preprocessor(preprocessor)
        return made

    def get_model(self, model: torch.nn.Module | None = None) -> torch.nn.Module:
        """The model. A checkpoint of a state dict needs a ``model`` to load it into.

        One of Lightning's is loaded into the ``model`` that is given, its LightningModule. Without, it is the network that was saved with it.
        A checkpoint of a dict has the model, or its state dict, under the key ``model`` or ``model_weights``.

        Raises:
            UntrustedCheckpointError: it is a whole model, with code, of somebody who is not known to be trusted.
        """
        import torch

        saved = self._saved(of_lightning=model is not None)
        if isinstance(saved, torch.nn.Module):
            return saved
        if model is None:
            raise ValueError(
                "this checkpoint holds a state dict, not a model: pass the model to load it into, get_model(model)"
            )
        model.load_state_dict(_plain(saved))
        return model

    def _saved(self, *, of_lightning: bool) -> Any:
        """The model or the state dict that is in it: Lightning's, if there are both and it is asked for."""
        if self._data is None:
            with self.as_directory() as folder:
                whole, lightnings = Path(folder, FILE), Path(folder, LIGHTNING_FILE)
                if lightnings.exists() and (of_lightning or not whole.exists()):
                    return self._load(lightnings)["state_dict"]
                if whole.exists():
                    return self._load(whole)
        saved = self.to_dict()
        for key in KEYS:
            if key in saved:
                return saved[key]
        raise CheckpointNotFoundError(
            f"this checkpoint has no model: it was not saved as a TorchCheckpoint, and its dict has neither {KEYS[0]!r} nor "
            f"{KEYS[1]!r}. It has {', '.join(map(repr, saved)) or 'nothing'}"
        )

    def _load(self, file: Path) -> Any:
        import torch

        try:
            return torch.load(file, weights_only=True, map_location="cpu")
        except pickle.UnpicklingError:  # there is more in it than weights
            self.require_trust()
            return torch.load(file, weights_only=False, map_location="cpu")


def _unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside of what compiles it or spreads it over workers. A user's own model may have a layer called ``module``, too."""
    while True:
        if hasattr(model, "_orig_mod"):  # torch.compile
            model = model._orig_mod  # type: ignore[assignment]
        elif any(_is_wrapper(each) for each in type(model).__mro__):
            model = model.module  # type: ignore[assignment]
        else:
            return model


def _is_wrapper(kind: type) -> bool:
    return kind.__name__ in _WRAPPERS and kind.__module__.startswith(("torch.", "deepspeed."))


def _plain(state_dict: dict[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("module."): value for key, value in state_dict.items()}
