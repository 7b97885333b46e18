"""The devices of a worker."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

__all__ = ["get_device", "get_devices"]


def get_device() -> torch.device:
    """The device of this worker: its GPU, the first one if it has several, or the CPU if it has none.

    Workers of one node see each other's GPUs, so this may be ``cuda:1``. With one GPU each it is ``cuda:{local_rank}``.
    """
    return get_devices()[0]


def get_devices() -> list[torch.device]:
    """All devices of this worker: the GPUs that it has reserved, or the CPU if it has none.

    Example::

        first, second = trainlib.torch.get_devices()  # with resources_per_worker={"GPU": 2}
    """
    import torch

    from trainlib._execution.gpus import CUDA_VISIBLE_DEVICES, indices_of

    if not torch.cuda.is_available():
        return [torch.device("cpu")]
    own = _reserved_gpus()
    if not own:
        return [torch.device("cuda", torch.cuda.current_device())]
    return [torch.device("cuda", index) for index in indices_of(own, os.environ.get(CUDA_VISIBLE_DEVICES))]


def _reserved_gpus() -> list[str]:
    """The ids of the GPUs that Ray has reserved for this process; none if it is no worker."""
    import ray

    if not ray.is_initialized() or ray._private.worker.global_worker.mode != ray.WORKER_MODE:
        return []
    return list(ray.get_runtime_context().get_accelerator_ids()["GPU"])
