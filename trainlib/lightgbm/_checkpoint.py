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
    def from_model(cls, booster: lightgbm.Booster, *, preprocessor: Preprocessor | None = None) -> Self:
        """A checkpoint of a model.

        Args:
            booster: The model.
            preprocessor: A fitted preprocessor, to be applied before predicting.
        """
        made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-lightgbm-"))
        booster.save_model(str(Path(made.path) / MODEL_FILE))
        made.set_preprocessor(preprocessor)
        return made

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
