"""Checkpoints of scikit-learn's estimators."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from trainlib._pickling import dump
from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError
from trainlib.sklearn._served import FILE

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["SklearnCheckpoint"]


class SklearnCheckpoint(Checkpoint):
    """A checkpoint of a fitted estimator. It is a pickle, as scikit-learn has no format of its own.

    Example:
        >>> from sklearn.linear_model import LinearRegression
        >>> from trainlib.sklearn import SklearnCheckpoint
        >>> saved = SklearnCheckpoint.from_estimator(LinearRegression().fit([[1.0], [2.0]], [2.0, 4.0]))
        >>> round(float(saved.get_estimator().predict([[3.0]])[0]))
        6
    """

    kind = "sklearn"

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, path: str | Path | None = None, preprocessor: Preprocessor | None = None
    ) -> Self:
        """A checkpoint of an estimator.

        Args:
            estimator: The estimator.
            path: The directory to write it to. Default: a temporary one, which goes with the checkpoint.
            preprocessor: A fitted preprocessor, to be applied before predicting.
        """
        if path is None:
            made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-sklearn-"))
        else:
            Path(path).mkdir(parents=True, exist_ok=True)
            made = cls.from_directory(path)
        with open(Path(made.path) / FILE, "wb") as file:
            dump(estimator, file)
        made.set_preprocessor(preprocessor)
        return made

    def get_estimator(self) -> Any:
        """The estimator.

        Raises:
            CheckpointNotFoundError: there is none in it.
            UntrustedCheckpointError: it is of somebody who is not known to be trusted. A pickle can run any code.
        """
        found = self._read(FILE)
        if FILE not in found:
            raise CheckpointNotFoundError(
                f"{self} has no estimator: there is no {FILE} in it. It was not saved as a SklearnCheckpoint"
            )
        return self._unpickled(found[FILE])

    def get_model(self) -> Any:
        """The estimator: the name that other frameworks' checkpoints have for it."""
        return self.get_estimator()
