"""Horovod: its trainer and its backend, for torch and for TensorFlow.

Horovod is built for the frameworks of an environment: ``python -m trainlib.horovod.build``.
"""

from trainlib.horovod._config import HorovodConfig
from trainlib.horovod._trainer import HorovodTrainer

__all__ = ["HorovodConfig", "HorovodTrainer"]
