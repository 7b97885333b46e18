"""PyTorch's global state in a worker. It is restored before the worker is reused."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
import torch.nn.parallel
import torch.utils.data

# What PyTorch itself does to a process when it needs more of itself, for example for the first optimizer. It is no state of the
# user's: see trainlib._execution.reset.left_behind.
BROUGHT = ("mpmath", "optree", "sympy")
REPLACED = ("torch.manual_seed",)


@dataclass
class TorchState:
    """The global settings that a training function can change."""

    dtype: torch.dtype
    device: torch.device
    threads: int
    grad: bool
    deterministic: tuple[bool, bool]
    matmul: str
    cudnn: tuple[bool, bool, bool]
    anomaly: bool


def snapshot() -> TorchState:
    """The present settings."""
    return TorchState(
        dtype=torch.get_default_dtype(),
        device=torch.get_default_device(),
        threads=torch.get_num_threads(),
        grad=torch.is_grad_enabled(),
        deterministic=(
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        matmul=torch.get_float32_matmul_precision(),
        cudnn=(
            torch.backends.cudnn.enabled,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.deterministic,
        ),
        anomaly=torch.is_anomaly_enabled(),
    )


def restore(state: TorchState) -> str | None:
    """Restore the settings in ``state``. Returns None, or the reason why this worker cannot be reused."""
    if torch.distributed.is_initialized():
        return "the process group still exists"
    _forget_accelerate()
    if torch.cuda.is_initialized():
        return "CUDA holds memory until the process ends"
    torch.seed()  # a random seed, as in a new process
    now = snapshot()
    if now.dtype != state.dtype:
        torch.set_default_dtype(state.dtype)
    if now.device != state.device:
        torch.set_default_device(None if state.device.type == "cpu" else state.device)
    if now.threads != state.threads:
        torch.set_num_threads(state.threads)
    if now.grad != state.grad:
        torch.set_grad_enabled(state.grad)
    if now.deterministic != state.deterministic:  # this imports half of torch, so only if needed
        torch.use_deterministic_algorithms(state.deterministic[0], warn_only=state.deterministic[1])
    if now.matmul != state.matmul:
        torch.set_float32_matmul_precision(state.matmul)
    if now.anomaly != state.anomaly:
        torch.autograd.set_detect_anomaly(state.anomaly)
    cudnn: Any = torch.backends.cudnn
    cudnn.enabled, cudnn.benchmark, cudnn.deterministic = state.cudnn
    return None


def _forget_accelerate() -> None:
    """Let Accelerate look at its process anew: it keeps the rank and the number of processes for good."""
    found: Any = sys.modules.get("accelerate.state")
    if found is not None:
        found.AcceleratorState._reset_state(reset_partial_state=True)
        found.GradientState._reset_state()
