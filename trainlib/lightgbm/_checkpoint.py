"""Checkpoints of LightGBM models."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    import lightgbm
    from ray.data.preprocessor import Preprocessor

__all__ = ["LightGBMCheckpoint"]

MODEL_FILE = "model.txt"
ROUNDS_FILE = "rounds.txt"
"""How many rounds a model was trained for. LightGBM keeps no tree of a round in which nothing could be split."""


class LightGBMCheckpoint(Checkpoint):
    """A checkpoint of a LightGBM model, in LightGBM's own format, which contains no code.

    Example:
        >>> import numpy, lightgbm
        >>> from trainlib.lightgbm import LightGBMCheckpoint
        >>> rows = lightgbm.Dataset(numpy.arange(100.0)[:, None], numpy.arange(100) > 50)
        >>> model = lightgbm.train({"objective": "binary", "verbosity": -1}, rows, num_boost_round=3)
        >>> LightGBMCheckpoint.from_model(model).get_model().current_iteration()
        3
    """

    kind = "lightgbm"

    @classmethod
    def from_model(
        cls, booster: lightgbm.Booster, *, preprocessor: Preprocessor | None = None, rounds: int | None = None
    ) -> Self:
        """A checkpoint of a model.

        Args:
            booster: The model.
            preprocessor: A fitted preprocessor, to be applied before predicting.
            rounds: How many rounds it was trained for, if that is known. See :meth:`get_rounds`.
        """
        made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-lightgbm-"))
        booster.save_model(str(Path(made.path) / MODEL_FILE))
        made.set_preprocessor(preprocessor)
        if rounds is not None:
            keep_rounds(made, rounds)
        return made

    def get_rounds(self) -> int:
        """How many rounds the model was trained for, which a training that goes on from it does not repeat.

        They may be more than the model's ``current_iteration()``, which is returned if the checkpoint does not know better: LightGBM
        keeps no tree of a round in which nothing could be split.
        """
        kept = kept_rounds(self)
        return kept if kept is not None else int(self.get_model().current_iteration())

    def get_model(self) -> lightgbm.Booster:
        """The model.

        Raises:
            CheckpointNotFoundError: there is none in it.
        """
        import lightgbm

        with self.as_directory() as folder:
            if (file := Path(folder) / MODEL_FILE).exists():
                return lightgbm.Booster(model_file=str(file))
        raise CheckpointNotFoundError(
            f"{self} has no LightGBM model: there is no {MODEL_FILE} in it. It was not saved as a LightGBMCheckpoint"
        )


def keep_rounds(checkpoint: Checkpoint, rounds: int) -> None:
    """Write into a checkpoint that is here how many rounds its model was trained for."""
    (Path(checkpoint.path) / ROUNDS_FILE).write_text(str(rounds))


def kept_rounds(checkpoint: Checkpoint) -> int | None:
    """How many rounds the model of a checkpoint was trained for, if that was written into it."""
    with checkpoint.as_directory() as folder:
        file = Path(folder) / ROUNDS_FILE
        return int(file.read_text()) if file.exists() else None
