"""Checkpoints of Hugging Face models."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    import torch
    import transformers
    from ray.data.preprocessor import Preprocessor

__all__ = ["TransformersCheckpoint", "model_folder"]

_CONFIG_FILE = "config.json"
_ARGUMENTS_FILE = "training_args.bin"
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
_FOLDER = "checkpoint"
"""Where RayTrainReportCallback puts the files of the Trainer."""


def model_folder(folder: Path) -> Path:
    """The folder with the files of the model: the checkpoint's own, or one in it."""
    inner = folder / _FOLDER
    return inner if not (folder / _CONFIG_FILE).exists() and inner.is_dir() else folder


class TransformersCheckpoint(Checkpoint):
    """A checkpoint of a Hugging Face model: what ``save_pretrained`` writes, and what a ``transformers.Trainer`` resumes from.

    Example:
        >>> import transformers
        >>> from trainlib.huggingface import TransformersCheckpoint
        >>> config = transformers.GPT2Config(vocab_size=9, n_positions=8, n_embd=4, n_layer=1, n_head=1)
        >>> saved = TransformersCheckpoint.from_model(transformers.GPT2LMHeadModel(config))
        >>> type(saved.get_model()).__name__
        'GPT2LMHeadModel'
    """

    kind = "huggingface"

    @classmethod
    def from_model(
        cls,
        model: transformers.PreTrainedModel,
        tokenizer: transformers.PreTrainedTokenizerBase | None = None,
        *,
        path: str | Path | None = None,
        preprocessor: Preprocessor | None = None,
    ) -> Self:
        """A checkpoint of a model, and of its tokenizer.

        Args:
            model: The model.
            tokenizer: Its tokenizer.
            path: The folder to write it to. Default: a temporary one.
            preprocessor: A fitted preprocessor, to be applied before predicting.
        """
        if path is None:
            made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-huggingface-"))
        else:
            Path(path).mkdir(parents=True, exist_ok=True)
            made = cls.from_directory(path)
        model.save_pretrained(made.path)
        if tokenizer is not None:
            tokenizer.save_pretrained(made.path)
        made.set_preprocessor(preprocessor)
        return made

    def get_model(self, model: type[transformers.PreTrainedModel] | torch.nn.Module | None = None, **load: Any) -> Any:
        """The model.

        Args:
            model: Its class, such as ``transformers.AutoModelForCausalLM``, or a model to load the weights into. Default: the
                class that the checkpoint names.
            load: Passed to ``from_pretrained``.
        """
        import torch

        with self.as_directory() as directory:
            folder = self._found(directory, _CONFIG_FILE if not isinstance(model, torch.nn.Module) else None)
            if isinstance(model, torch.nn.Module):
                return _with_weights(model, folder)
            kind: Any = model if model is not None else _class_in(folder)
            return kind.from_pretrained(folder, **{"local_files_only": True, **load})

    def get_tokenizer(self, tokenizer: type[transformers.PreTrainedTokenizerBase] | None = None, **load: Any) -> Any:
        """The tokenizer, if one was saved with the model.

        Args:
            tokenizer: Its class. Default: the one that the checkpoint names.
            load: Passed to ``from_pretrained``.
        """
        import transformers

        with self.as_directory() as directory:
            folder = self._found(directory, "tokenizer_config.json")
            kind: Any = tokenizer if tokenizer is not None else transformers.AutoTokenizer
            return kind.from_pretrained(folder, **{"local_files_only": True, **load})

    def get_training_arguments(self) -> transformers.TrainingArguments:
        """The TrainingArguments of the Trainer that has saved it.

        Raises:
            UntrustedCheckpointError: they are pickled, by somebody who is not known to be trusted.
        """
        import torch

        with self.as_directory() as directory:
            file = self._found(directory, _ARGUMENTS_FILE) / _ARGUMENTS_FILE
            self.require_trust()
            found: transformers.TrainingArguments = torch.load(file, weights_only=False, map_location="cpu")
            return found

    def _found(self, directory: str, needed: str | None) -> Path:
        folder = model_folder(Path(directory))
        if needed is not None and not (folder / needed).exists():
            what = {_CONFIG_FILE: "Hugging Face model", _ARGUMENTS_FILE: "TrainingArguments"}.get(needed, "tokenizer")
            why = {
                _CONFIG_FILE: "It was not saved by a transformers.Trainer or with TransformersCheckpoint.from_model().",
                _ARGUMENTS_FILE: "Only a transformers.Trainer saves them.",
            }.get(needed, "Pass it to the transformers.Trainer as processing_class.")
            files = ", ".join(sorted(each.name for each in folder.iterdir())) or "nothing"
            raise CheckpointNotFoundError(f"this checkpoint has no {what}: {needed} is missing. {why} It has {files}")
        return folder


def _class_in(folder: Path) -> Any:
    """The class of the model, by the name that is in its config."""
    import transformers

    named = json.loads((folder / _CONFIG_FILE).read_text()).get("architectures") or []
    found = [getattr(transformers, name) for name in named if hasattr(transformers, name)]
    if not found:
        raise ValueError(
            f"the model's class is {', '.join(named) or 'not named in the checkpoint'}, which is none of Transformers' own: pass "
            "it, get_model(MyModel)"
        )
    return found[0]


def _with_weights(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    from safetensors.torch import load_model

    if not (folder / _WEIGHTS[0]).exists():
        raise CheckpointNotFoundError(
            f"this checkpoint has no {_WEIGHTS[0]} to load into the model: pass the model's class instead, get_model(MyModel)"
        )
    load_model(model, folder / _WEIGHTS[0])
    return model
