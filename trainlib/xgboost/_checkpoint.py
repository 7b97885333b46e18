"""Checkpoints of XGBoost models."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError

if TYPE_CHECKING:
    import xgboost
    from ray.data.preprocessor import Preprocessor

__all__ = ["XGBoostCheckpoint"]

MODEL_FILE = "model.ubj"


class XGBoostCheckpoint(Checkpoint):
    """A checkpoint of an XGBoost model, in XGBoost's own format, which contains no code.

    Example:
        >>> import numpy, xgboost
        >>> from trainlib.xgboost import XGBoostCheckpoint
        >>> rows = xgboost.DMatrix(numpy.eye(4), [0, 0, 1, 1])
        >>> model = xgboost.train({"objective": "binary:logistic"}, rows, num_boost_round=3)
        >>> XGBoostCheckpoint.from_model(model).get_model().num_boosted_rounds()
        3
    """

    kind = "xgboost"

    @classmethod
    def from_model(cls, booster: xgboost.Booster, *, preprocessor: Preprocessor | None = None) -> Self:
        """A checkpoint of a model.

        Args:
            booster: The model.
            preprocessor: A fitted preprocessor, to be applied before predicting.
        """
        made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-xgboost-"))
        booster.save_model(Path(made.path) / MODEL_FILE)
        made.set_preprocessor(preprocessor)
        return made

    def get_model(self) -> xgboost.Booster:
        """The model.

        Raises:
            CheckpointNotFoundError: there is none in it.
        """
        import xgboost

        with self.as_directory() as folder:
            for name in (MODEL_FILE, "model.json"):
                if (file := Path(folder) / name).exists():
                    return xgboost.Booster(model_file=str(file))
        raise CheckpointNotFoundError(
            f"{self} has no XGBoost model: there is neither {MODEL_FILE} nor model.json in it. It was not saved as an "
            "XGBoostCheckpoint"
        )
