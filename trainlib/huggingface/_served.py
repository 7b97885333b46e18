"""Predicts with a checkpoint of a Hugging Face model, also where trainlib is not installed.

This file is copied beside registered models, and imports nothing of trainlib.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

CONFIG, FOLDER = "config.json", "checkpoint"
TEXT = "text"
_AT_ONCE = 32
_IDS, _MASK = "input_ids", "attention_mask"


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can."""
    inside = _model_folder(folder)
    if not (inside / CONFIG).exists():
        return f"it has no {CONFIG}, so that nobody knows which Hugging Face model it is"
    if not json.loads((inside / CONFIG).read_text()).get("architectures"):
        return f"its {CONFIG} does not name the class of the model"
    return None


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts with the model in a folder.

    Columns that have the names of the model's arguments, such as ``input_ids``, are passed to it; shorter rows are filled up. If
    there are none, a column of text is tokenized: the one named ``text``, or the only one. The answers are

    - of a model for sequence classification: ``label`` and ``score`` for each row; all scores, if a row may have several labels;
      the number, for a regression;
    - of a model that generates text, for a column of text: ``generated_text``;
    - of any other model: its logits, or its last hidden states.

    Raises:
        ValueError: the class of the model is none of Transformers' own.
    """
    import torch
    import transformers

    inside = _model_folder(folder)
    names = json.loads((inside / CONFIG).read_text()).get("architectures") or []
    kind: Any = next((getattr(transformers, name) for name in names if hasattr(transformers, name)), None)
    if kind is None:
        raise ValueError(
            f"the model's class is {', '.join(names) or 'not named'}, which is none of Transformers' own: load it with "
            "TransformersCheckpoint.get_model(MyModel)"
        )
    model = kind.from_pretrained(inside, local_files_only=True).eval()
    tokenizer = None
    if (inside / "tokenizer_config.json").exists():
        tokenizer = transformers.AutoTokenizer.from_pretrained(inside, local_files_only=True)
    served = _Served(model, tokenizer)

    def predict(rows: pd.DataFrame) -> Any:
        with torch.inference_mode():
            return _together([served.answers(rows.iloc[at : at + _AT_ONCE]) for at in range(0, len(rows), _AT_ONCE)])

    return predict


class _Served:
    """A model and its tokenizer, if it has one."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._known = [name for name in inspect.signature(model.forward).parameters if name != "labels"]

    def answers(self, rows: pd.DataFrame) -> Any:
        """What the model says to some rows, as an array or a dict of columns."""
        import torch

        given = [name for name in self._known if name in rows.columns]
        inputs = self._tensors(rows, given) if given else self._tokenized(rows)
        if not given and self._model.can_generate():
            made = self._model.generate(**inputs)
            if not self._model.config.is_encoder_decoder:
                made = made[:, inputs[_IDS].shape[1] :]  # what follows the text
            return {"generated_text": self._tokenizer.batch_decode(made, skip_special_tokens=True)}
        output = self._model(**inputs)
        logits = output["logits"] if "logits" in output else output[0]
        if not type(self._model).__name__.endswith("ForSequenceClassification"):
            return logits.numpy()
        config = self._model.config
        if config.num_labels == 1 or config.problem_type == "regression":
            return logits.squeeze(-1).numpy()
        if config.problem_type == "multi_label_classification":
            return torch.sigmoid(logits).numpy()
        scores, labels = torch.softmax(logits, dim=-1).max(dim=-1)
        return {"label": [config.id2label[each] for each in labels.tolist()], "score": scores.tolist()}

    def _tensors(self, rows: pd.DataFrame, names: list[str]) -> dict[str, Any]:
        import torch

        values = {name: [_plain(each) for each in rows[name]] for name in names}
        if _IDS in values and self._is_ragged(values[_IDS]):
            lengths = [len(ids) for ids in values[_IDS]]
            values.setdefault(_MASK, [[1] * length for length in lengths])
            for name, column in values.items():
                filler = self._filler() if name == _IDS else 0
                values[name] = [each + [filler] * (max(lengths) - len(each)) for each in column]
        return {name: torch.tensor(column) for name, column in values.items()}

    def _is_ragged(self, column: list[Any]) -> bool:
        return len({len(each) for each in column}) > 1

    def _filler(self) -> int:
        return int(getattr(self._model.config, "pad_token_id", None) or 0)

    def _tokenized(self, rows: pd.DataFrame) -> Any:
        texts = [name for name in rows.columns if all(isinstance(each, str) for each in rows[name])]
        column = TEXT if TEXT in texts else texts[0] if len(texts) == 1 else None
        if column is None or self._tokenizer is None:
            why = "it was saved without a tokenizer" if self._tokenizer is None else f"there is no column {TEXT!r}"
            raise ValueError(
                f"the model takes the columns {', '.join(self._known[:4])}, ..., but the rows have "
                f"{', '.join(map(str, rows.columns))}, and {why}"
            )
        longest = getattr(self._model.config, "max_position_embeddings", None)
        fitted = {"truncation": True, "max_length": longest} if longest else {}
        inputs = self._tokenizer(list(rows[column]), return_tensors="pt", padding=True, **fitted)
        return {name: tensor for name, tensor in inputs.items() if name in self._known}


def _model_folder(folder: str) -> Path:
    inner = Path(folder, FOLDER)
    return inner if not Path(folder, CONFIG).exists() and inner.is_dir() else Path(folder)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _together(parts: list[Any]) -> Any:
    """The answers to all rows, from those to some at a time."""
    import numpy as np
    import pandas as pd

    if isinstance(parts[0], dict):
        return pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    arrays: list[np.ndarray] = parts
    return np.concatenate(arrays)
