"""Automatic mixed precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib import session

if TYPE_CHECKING:
    import torch

__all__ = ["accelerate", "backward", "prepare_optimizer"]


@dataclass
class Accelerator:
    """The mixed precision settings of one training function."""

    scaler: Any


def accelerate(amp: bool = False) -> None:
    """Turn automatic mixed precision on. Call it first in the training function.

    Example::

        def train_func():
            trainlib.torch.accelerate(amp=True)
            model = trainlib.torch.prepare_model(NeuralNetwork())
            optimizer = trainlib.torch.prepare_optimizer(torch.optim.SGD(model.parameters(), lr=0.001))
            ...
            trainlib.torch.backward(loss)
            optimizer.step()
    """
    import torch

    from trainlib.torch._devices import get_device

    current: Any = session.current("accelerate")
    if hasattr(current, "accelerator"):
        raise RuntimeError(
            "accelerate() was called twice, or after prepare_model(). Call it once, before anything else"
        )
    # Float16 gradients underflow and need scaling; on the CPU bfloat16 is used, which has the range of float32.
    device = get_device().type
    current.accelerator = (
        Accelerator(torch.amp.GradScaler(device) if amp and device == "cuda" else None) if amp else None
    )


def _accelerator(function: str) -> Accelerator | None:
    """The accelerator of this training function. None if :func:`accelerate` was not called before."""
    current: Any = session.current(function)
    if not hasattr(current, "accelerator"):
        current.accelerator = None
    return current.accelerator  # type: ignore[no-any-return]


def autocast_forward(model: torch.nn.Module, device: torch.device) -> torch.nn.Module:
    """Make a model compute in mixed precision, if it is turned on. Its outputs stay float32."""
    import torch

    if _accelerator("prepare_model") is None:
        return model
    from trainlib.torch._mixed_precision import MixedPrecisionForward

    dtype = torch.float16 if device.type == "cuda" else torch.bfloat16
    model.forward = MixedPrecisionForward(model, device.type, dtype)  # type: ignore[method-assign]
    return model


def prepare_optimizer(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Make an optimizer step with scaled gradients, where mixed precision needs it.

    What is returned is an ``Optimizer`` too: learning rate schedules and checkpoints take it.
    """
    accelerator = _accelerator("prepare_optimizer")
    if accelerator is None or accelerator.scaler is None:
        return optimizer
    from trainlib.torch._mixed_precision import ScaledOptimizer

    return ScaledOptimizer(optimizer, accelerator.scaler)


def backward(loss: torch.Tensor) -> None:
    """Compute the gradients of a loss, scaled where mixed precision needs it."""
    accelerator = _accelerator("backward")
    if accelerator is None or accelerator.scaler is None:
        loss.backward()
    else:
        accelerator.scaler.scale(loss).backward()
