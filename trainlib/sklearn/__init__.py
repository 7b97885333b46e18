"""scikit-learn: its trainer and its checkpoints.

``import trainlib.sklearn`` does not import scikit-learn: the coordinating process may do without it.
"""

from trainlib.sklearn._checkpoint import SklearnCheckpoint
from trainlib.sklearn._config import SklearnConfig
from trainlib.sklearn._trainer import SklearnTrainer

__all__ = ["SklearnCheckpoint", "SklearnConfig", "SklearnTrainer"]
