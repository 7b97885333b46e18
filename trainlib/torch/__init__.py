"""PyTorch: its trainer, its backend, and helpers for a training function.

``import trainlib.torch`` does not import torch: the coordinating process may do without it.
"""

from trainlib.torch._amp import accelerate, backward, prepare_optimizer
from trainlib.torch._checkpoint import TorchCheckpoint
from trainlib.torch._config import TorchConfig
from trainlib.torch._data_loader import prepare_data_loader
from trainlib.torch._devices import get_device, get_devices
from trainlib.torch._model import prepare_model
from trainlib.torch._profiler import TorchWorkerProfiler
from trainlib.torch._reproducibility import enable_reproducibility
from trainlib.torch._trainer import TorchTrainer

__all__ = [
    "TorchCheckpoint",
    "TorchConfig",
    "TorchTrainer",
    "TorchWorkerProfiler",
    "accelerate",
    "backward",
    "enable_reproducibility",
    "get_device",
    "get_devices",
    "prepare_data_loader",
    "prepare_model",
    "prepare_optimizer",
]
