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
    import pandas as pd

CONFIG, FOLDER = "config.json", "checkpoint"
TEXT = "text"
_AT_ONCE = 32
_MADE = 20
"""How many tokens Transformers makes, if nobody says it."""
_IDS, _MASK = "input_ids", "attention_mask"
_OF_TOKENS = ("start_logits", "end_logits")
"""Numbers of each token, where an answer may begin and end."""


def why_not(folder: str) -> str | None:
    """Why a checkpoint cannot predict. None if it can."""
    inside = _model_folder(folder)
    if not (inside / CONFIG).exists():
        return f"it has no {CONFIG}, so the model's class is unknown"
    if not json.loads((inside / CONFIG).read_text()).get("architectures"):
        return f"its {CONFIG} does not name the class of the model"
    return None


def load(folder: str) -> Callable[[pd.DataFrame], Any]:
    """What predicts with the model in a folder.

    Columns that have the names of the model's arguments, such as ``input_ids``, are passed to it; shorter rows are filled up. If
    there are none, a column of text is tokenized: the one named ``text``, or the only one. The answers are

    - of a model for sequence classification: ``label`` and ``score`` for each row; all scores, if a row may have several labels;
      the number, for a regression;
    - of a model that generates text: ``generated_text``, if it has an encoder or is given a column of text. Without a tokenizer,
      ``generated_ids``. A model with an encoder that is given ``decoder_input_ids`` generates nothing;
    - of a model with several logits: a column for each of them, such as ``start_logits`` and ``end_logits`` of one that answers
      questions;
    - of any other model: its logits, or its last hidden states.

    Logits of each token have as many places in a row's answer as the row has tokens: one array, if all rows are equally long, else a
    list. Columns of labels are ignored. The answer for a row does not depend on the other rows.

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
            step, text = served.at_once(rows), served.text_column(rows)
            parts = [served.answers(rows.iloc[at : at + step], text, at) for at in range(0, len(rows), step)]
            return _together(parts or [served.no_answers(rows)])

    return predict


class _Served:
    """A model and its tokenizer, if it has one."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        labels = _labels_of(model)
        self._known = [name for name in inspect.signature(model.forward).parameters if name not in labels]
        self._marks_spans = "start_positions" in labels and not hasattr(model.config, "start_n_top")
        model.config.return_dict = True  # the parts of an output are told apart by their names
        self._continues = bool(model.can_generate() and not model.config.is_encoder_decoder)
        if tokenizer is not None and self._continues:
            # What is made follows the text: its end has to be there, and nothing between the two.
            tokenizer.padding_side = tokenizer.truncation_side = "left"

    def at_once(self, rows: pd.DataFrame) -> int:
        """How many rows are answered at a time. One, if there is nothing to fill up shorter ones with."""
        config, tokenizer = self._model.config, self._tokenizer
        if self._given(rows):
            is_filled = not self._classifies or getattr(config, "pad_token_id", None) is not None
        else:
            is_filled = tokenizer is None or tokenizer.pad_token is not None
        return _AT_ONCE if is_filled else 1

    def text_column(self, rows: pd.DataFrame) -> Any:
        """The column that is tokenized. None if there are no rows, or columns that are arguments of the model.

        Raises:
            ValueError: there is no such column, or a text in it is missing.
        """
        if self._given(rows) or not len(rows):
            return None
        with_text = [name for name in rows.columns if any(isinstance(each, str) for each in rows[name])]
        column = TEXT if TEXT in rows.columns else with_text[0] if len(with_text) == 1 else None
        if column is None or self._tokenizer is None:
            why = "it was saved without a tokenizer" if self._tokenizer is None else f"there is no column {TEXT!r}"
            raise ValueError(
                f"the model takes the columns {', '.join(self._known[:4])}, ..., but the rows have "
                f"{', '.join(map(str, rows.columns))}, and {why}"
            )
        for at, each in enumerate(rows[column]):
            if not isinstance(each, str):
                raise ValueError(
                    f"the column {column!r} has no text in row {at} of the {len(rows)} rows, counted from 0: it is {each!r:.80}. "
                    "Fill it in, or drop that row"
                )
        return column

    def answers(self, rows: pd.DataFrame, text: Any, first: int) -> Any:
        """The answers for some rows: an array, a list of the rows' arrays, or a dict of columns.

        Args:
            rows: The rows.
            text: Their column of text. None: they have columns that are arguments of the model.
            first: How many rows come before them, for errors.

        Raises:
            ValueError: a row has no tokens, or more than the model can read.
        """
        inputs, real = self._tensors(rows, first) if self._given(rows) else self._tokenized(rows[text], first)
        try:
            return self._answers(rows, inputs, real)
        except (IndexError, RuntimeError) as error:
            # Not asked before: some models can read more tokens than their config says.
            if _IDS in rows and (longest := self._places()):
                for at, ids in enumerate(rows[_IDS], first):
                    if len(ids) > longest:
                        raise ValueError(
                            f"there are {len(ids)} tokens in the column {_IDS!r} of row {at}, counted from 0: the model reads "
                            f"{longest}. Cut it, or drop that row"
                        ) from error
            raise

    def _answers(self, rows: pd.DataFrame, inputs: dict[str, Any], real: Any) -> Any:
        import torch

        if self._generates(rows):
            made = self._model.generate(**inputs, **self._limit())
            if self._continues:
                made = made[:, inputs[_IDS].shape[1] :]  # what follows the text
            if self._tokenizer is None:
                return {"generated_ids": [self._unfilled(ids) for ids in made.tolist()]}
            return {"generated_text": self._tokenizer.batch_decode(made, skip_special_tokens=True)}
        found = _logits_in(self._model(**inputs))
        if len(found) > 1:
            return {name: [row.tolist() for row in _by_row(name, each, real)] for name, each in found.items()}
        ((name, logits),) = found.items()
        if not self._classifies:
            return _by_row(name, logits, real)
        config = self._model.config
        if config.num_labels == 1 or config.problem_type == "regression":
            return logits.squeeze(-1).numpy()
        if config.problem_type == "multi_label_classification":
            return torch.sigmoid(logits).numpy()
        scores, labels = torch.softmax(logits, dim=-1).max(dim=-1)
        return {"label": [config.id2label[each] for each in labels.tolist()], "score": scores.tolist()}

    def no_answers(self, rows: pd.DataFrame) -> Any:
        """The answer for an empty table."""
        import numpy as np

        config = self._model.config
        if self._generates(rows):
            return {"generated_ids" if self._tokenizer is None else "generated_text": []}
        if self._classifies and config.num_labels > 1 and config.problem_type in (None, "single_label_classification"):
            return {"label": [], "score": []}
        if self._marks_spans:
            return {name: [] for name in _OF_TOKENS}
        return np.empty(0, "float32")

    @property
    def _classifies(self) -> bool:
        return type(self._model).__name__.endswith("ForSequenceClassification")

    def _given(self, rows: pd.DataFrame) -> list[str]:
        """The columns that are arguments of the model."""
        return [name for name in self._known if name in rows.columns]

    def _generates(self, rows: pd.DataFrame) -> bool:
        if not self._model.can_generate():
            return False
        given = self._given(rows)
        # A decoder needs something to begin with. Generating begins by itself.
        return not given or (not self._continues and not any(name.startswith("decoder_input") for name in given))

    def _limit(self) -> dict[str, int]:
        """How much is made: as much for each row, however long the others are. A length of text and answer together would depend on them."""
        return {"max_new_tokens": self._made_tokens()} if self._continues else {}

    def _made_tokens(self) -> int:
        """How many tokens follow a text. They leave at least half of the places to the text."""
        settings = self._model.generation_config
        wanted = settings.max_new_tokens or settings.max_length or _MADE
        longest = self._longest()
        return min(wanted, longest // 2) if longest else wanted

    def _longest(self) -> int | None:
        """How many tokens a text is cut to. None: it is not cut."""
        places = self._places()
        return min(places, self._tokenizer.model_max_length) if places and self._tokenizer is not None else places

    def _places(self) -> int | None:
        """How many tokens the model can read. None: any number."""
        places = getattr(self._model.config, "max_position_embeddings", None)
        if not places or places < 0:
            return None
        # Tokens of RoBERTa and its like begin after the place of filling: the first places are never used.
        unused = [
            module.padding_idx + 1
            for name, module in self._model.named_modules()
            if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
        ]
        return int(places) - max(unused, default=0)

    def _tensors(self, rows: pd.DataFrame, first: int) -> tuple[dict[str, Any], Any]:
        """What the model is called with, and which places of it are no filling. None: there is none."""
        import torch

        values = {name: [_plain(each) for each in rows[name]] for name in self._given(rows)}
        real = None
        if _IDS in values:
            _require_tokens([len(ids) for ids in values[_IDS]], values[_IDS], _IDS, first)
        if _IDS in values and self._is_ragged(values[_IDS]):
            lengths = [len(ids) for ids in values[_IDS]]
            real = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
            values.setdefault(_MASK, [[1] * length for length in lengths])
            for name, column in values.items():
                filler = self._filler() if name == _IDS else 0
                values[name] = [each + [filler] * (max(lengths) - len(each)) for each in column]
        tensors = {name: torch.tensor(column) for name, column in values.items()}
        return {
            name: each.to(self._model.dtype) if each.is_floating_point() else each for name, each in tensors.items()
        }, real

    def _is_ragged(self, column: list[Any]) -> bool:
        return len({len(each) for each in column}) > 1

    def _filler(self) -> int:
        return int(getattr(self._model.config, "pad_token_id", None) or 0)

    def _unfilled(self, ids: list[int]) -> list[int]:
        """What was made for a row, without what fills it up to the longest of the rows beside it."""
        filler = self._filler()
        while len(ids) > 1 and ids[-1] == filler:
            ids = ids[:-1]
        return ids

    def _tokenized(self, texts: pd.Series[str], first: int) -> tuple[dict[str, Any], Any]:
        longest = self._longest()
        if longest and self._continues:
            longest -= self._made_tokens()
        fitted = {"truncation": True, "max_length": longest} if longest else {}
        given = {"return_tensors": "pt", "return_attention_mask": True, "padding": len(texts) > 1}
        inputs = self._tokenizer(list(texts), **given, **fitted)
        real = inputs[_MASK].bool()
        _require_tokens(real.sum(dim=1).tolist(), texts, texts.name, first)
        return {name: tensor for name, tensor in inputs.items() if name in self._known}, real


def _labels_of(model: Any) -> set[str]:
    """The arguments of a model that are not known when it predicts."""
    from transformers.utils.generic import find_labels

    return {name for name in find_labels(type(model)) if not name.startswith("input_")}  # SAM's describe the points


def _logits_in(output: Any) -> dict[str, Any]:
    """The logits in the output of a model, or the places that it has found, or else its hidden states. NumPy has no bfloat16."""
    import torch

    named = {name: each for name, each in output.items() if isinstance(each, torch.Tensor)}
    several = {
        name: each for name, each in named.items() if name.endswith("_logits") or name.startswith(("start_", "end_"))
    }
    if "logits" in named:
        several = {"logits": named["logits"]}
    found = several or {"hidden": output[0]}
    return {name: each.float() if each.is_floating_point() else each for name, each in found.items()}


def _by_row(name: str, logits: Any, real: Any) -> Any:
    """Logits as an array, or as a list of the rows' arrays, without those of places that are filled up."""
    is_by_token = logits.ndim > 2 or name in _OF_TOKENS
    if real is None or not is_by_token or logits.shape[:2] != real.shape:
        return logits.numpy()
    return [row[kept].numpy() for row, kept in zip(logits, real, strict=True)]


def _require_tokens(counts: list[int], given: Any, column: Any, first: int) -> None:
    """Raise a ValueError if a row has no tokens. A model has nothing to answer then, and fails, or answers to the filling."""
    for at, (count, each) in enumerate(zip(counts, given, strict=True), first):
        if not count:
            raise ValueError(
                f"there are no tokens in the column {column!r} of row {at}, counted from 0: it is {each!r:.80}. Fill it in, or drop "
                "that row"
            )


def _model_folder(folder: str) -> Path:
    inner = Path(folder, FOLDER)
    return inner if not Path(folder, CONFIG).exists() and inner.is_dir() else Path(folder)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _together(parts: list[Any]) -> Any:
    """The answers for all rows, from those for some at a time."""
    import numpy as np
    import pandas as pd

    if isinstance(parts[0], dict):
        return pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    rows = [row for part in parts for row in part]
    if len({np.shape(row) for row in rows}) > 1:
        return [row.tolist() for row in rows]
    return np.stack(rows) if rows else parts[0]
