"""Predicts with a checkpoint of a whole torch model, also where trainlib is not installed.

This file is copied beside registered models: of trainlib, it imports only what is copied with it.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._serving.arrays import as_array
from trainlib._serving.preprocessing import DICT_FILE, unpickled

if TYPE_CHECKING:
    import pandas as pd
    import torch

FILE = "model.pt"
KEYS = ("model", "model_weights")
"""Where a dict has a model."""
LIGHTNING_FILE = "checkpoint.ckpt"
"""What Lightning's Trainer saves: the state dict, and besides it all that is needed to resume."""
_WHOLE = "Report a whole model, TorchCheckpoint.from_model(model)"
_STATE_DICT = f"it holds a state dict, which are weights without the model that they belong to. {_WHOLE}"
_LIGHTNING = (
    f"it is a checkpoint of Lightning's, {LIGHTNING_FILE}, which holds weights without the model that they belong to. Let the "
    "network be saved with them: RayTrainReportCallback(model=lambda module: module.network)"
)


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can. Nothing is unpickled."""
    file, whole = Path(folder, FILE), Path(folder, DICT_FILE)
    if file.exists():
        return None if _is_object(file) else _STATE_DICT
    if not whole.exists():
        return _LIGHTNING if Path(folder, LIGHTNING_FILE).exists() else f"it has no {FILE}. {_WHOLE}"
    # Models have parameters, and state dicts have plain tensors.
    return None if b"_rebuild_parameter" in whole.read_bytes() else _STATE_DICT


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts with the model in a folder: its outputs for the rows.

    The features are the column of arrays, if there is one, such as a Concatenator makes; else all columns, in their order. They get
    the type of the model's weights.

    Raises:
        ValueError: there are only weights in it.
        ImportError: the class of the model cannot be imported here.
    """
    import torch

    model = _model_in(folder)
    if not isinstance(model, torch.nn.Module):
        raise ValueError(f"this checkpoint cannot predict by itself: {_STATE_DICT}")
    model.eval()
    kind = _input_type(model)

    def predict(rows: pd.DataFrame) -> Any:
        with torch.inference_mode():
            return _plain(model(torch.as_tensor(as_array(rows)).to(kind)))

    return predict


def _model_in(folder: str) -> Any:
    import torch

    file = Path(folder, FILE)
    if not file.exists():
        saved = unpickled(Path(folder, DICT_FILE))
        return next((saved[key] for key in KEYS if key in saved), None)
    try:
        return torch.load(file, weights_only=False, map_location="cpu")
    except (ModuleNotFoundError, AttributeError) as error:
        raise ImportError(
            f"the class of the model cannot be imported: {error}. Put the module that defines it on PYTHONPATH. A class of a script "
            "is in no module: move it to one before training"
        ) from error


def _is_object(file: Path) -> bool:
    """Whether a file of ``torch.save`` has an object of some class in it, rather than a dict. Nothing is unpickled."""
    if not zipfile.is_zipfile(file):
        return True  # of the format before torch 1.6, of which only loading would tell
    with zipfile.ZipFile(file) as archive:
        name = next(each for each in archive.namelist() if each.endswith("data.pkl"))
        for code, argument, _ in pickletools.genops(archive.read(name)):
            if code.name != "PROTO":
                return code.name == "GLOBAL" and argument != "collections OrderedDict"
    return False


def _input_type(model: torch.nn.Module) -> torch.dtype:
    """Whole numbers for a model that begins with an embedding, else the type of its first weights."""
    import torch

    for module in model.modules():
        for weights in module.parameters(recurse=False):
            return torch.int64 if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) else weights.dtype
    return torch.float32


def _plain(output: Any) -> Any:
    """A model's output as arrays."""
    import torch

    if isinstance(output, torch.Tensor):
        return output.numpy()
    if isinstance(output, dict):
        return {name: _plain(each) for name, each in output.items()}
    raise ValueError(
        f"the model returns a {type(output).__name__} for a batch. To predict by itself, it has to return a tensor or a dict of tensors"
    )
