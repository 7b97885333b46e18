"""Making a torch training repeatable."""

from __future__ import annotations

import os
import random

from trainlib.session import note_seed

__all__ = ["enable_reproducibility"]


def enable_reproducibility(seed: int = 0) -> None:
    """Make runs of a training function repeatable: set all seeds, and use deterministic algorithms.

    The seed is recorded with the training, as the tag ``trainlib.seeds`` of its MLflow run.

    Results may still differ between machines, and between versions of torch.
    """
    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # cuBLAS is deterministic only with a fixed workspace
    note_seed(seed)
