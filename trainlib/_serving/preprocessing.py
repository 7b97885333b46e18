"""The preprocessor that was kept with a checkpoint, for rows to predict for.

This file is copied beside the model, and imports nothing of trainlib.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

DICT_FILE = "dict_checkpoint.pkl"
PREPROCESSOR_KEY = "_preprocessor"
PREPROCESSOR_FILE = "preprocessor.pkl"


def preprocessor_in(folder: str) -> Preprocessor | None:
    """The fitted preprocessor in the folder of a checkpoint. None if it has none.

    It is a pickle: whoever calls this trusts whoever wrote it.

    Raises:
        ImportError: Ray, or a module with a class of the user's own, is missing.
    """
    own = Path(folder, PREPROCESSOR_FILE)
    if own.exists():
        return unpickled(own)  # type: ignore[no-any-return]
    whole = Path(folder, DICT_FILE)
    return unpickled(whole).get(PREPROCESSOR_KEY) if whole.exists() else None


def unpickled(file: Path) -> Any:
    """What a pickle holds.

    Raises:
        ImportError: something that it needs is not installed.
    """
    try:
        return pickle.loads(file.read_bytes())
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{file.name} cannot be loaded without {error.name}. Install it here, or put the module on PYTHONPATH",
            name=error.name,
        ) from error


def steps(preprocessor: Preprocessor) -> list[Preprocessor]:
    """The preprocessors of a chain, or the single one."""
    from ray.data.preprocessors import Chain

    if isinstance(preprocessor, Chain):
        return [step for each in preprocessor.preprocessors for step in steps(each)]
    return [preprocessor]


def without_absent_labels(preprocessor: Preprocessor, columns: Iterable[str]) -> Preprocessor | None:
    """A preprocessor without its encoders of labels that the rows do not have: rows to predict for have none.

    Returns None if nothing is left of it.
    """
    from ray.data.preprocessors import Chain, LabelEncoder

    there = set(columns)
    left = [
        step
        for step in steps(preprocessor)
        if not (isinstance(step, LabelEncoder) and there.isdisjoint(step.get_input_columns()))
    ]
    if len(left) == len(steps(preprocessor)):
        return preprocessor
    return (left[0] if len(left) == 1 else Chain(*left)) if left else None  # type: ignore[arg-type]
