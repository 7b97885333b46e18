"""The frameworks by their names, as a form or RaySGD's ``backend="torch"`` gives them."""

from __future__ import annotations

from trainlib.trainer import DataParallelTrainer


def trainers() -> dict[str, type[DataParallelTrainer]]:
    """The trainer of each framework; ``function`` is that of none. Imported only here: ``import trainlib`` stays fast.

    Example:
        >>> list(trainers())
        ['torch', 'tensorflow', 'horovod', 'function']
    """
    from trainlib.horovod import HorovodTrainer
    from trainlib.tensorflow import TensorflowTrainer
    from trainlib.torch import TorchTrainer

    return {
        "torch": TorchTrainer,
        "tensorflow": TensorflowTrainer,
        "horovod": HorovodTrainer,
        "function": DataParallelTrainer,
    }
