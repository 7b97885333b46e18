"""What mixed precision puts in the place of a model's forward, and of an optimizer."""

from __future__ import annotations

import copy
import functools
from typing import Any

import torch

from trainlib.torch._nested import map_tensors

__all__ = ["MixedPrecisionForward", "ScaledOptimizer"]


class MixedPrecisionForward:
    """Calls a model's forward in mixed precision, and gives its outputs as float32.

    It is an attribute of the model, but never part of what is saved: a pickled model has its own forward, and is loaded
    without trainlib. A deep copy of the model, such as an average of its weights, has one of its own.
    """

    def __init__(self, model: torch.nn.Module, device_type: str, dtype: torch.dtype) -> None:
        self._model = model
        # None if it is the method of the model's class: a reference to it would be one to this very model.
        self._replaced = None if _is_own_method(model) else model.forward
        self._device_type = device_type
        self._dtype = dtype

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with torch.autocast(self._device_type, dtype=self._dtype):
            outputs = self._forward(*args, **kwargs)
        return map_tensors(outputs, _as_float32)

    def _forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._replaced is not None:
            return self._replaced(*args, **kwargs)
        return type(self._model).forward(self._model, *args, **kwargs)

    def __reduce__(self) -> Any:
        if self._replaced is not None:
            return functools.partial, (self._replaced,)
        return getattr, (self._model, "forward")  # what the model finds before it has its attributes: the method

    def __deepcopy__(self, memo: dict[int, Any]) -> MixedPrecisionForward:
        copied = copy.copy(vars(self))
        copied["_model"] = copy.deepcopy(self._model, memo)
        copied["_replaced"] = copy.deepcopy(self._replaced, memo)
        made = object.__new__(type(self))
        vars(made).update(copied)
        return made


def _is_own_method(model: torch.nn.Module) -> bool:
    forward: Any = model.forward
    return getattr(forward, "__self__", None) is model and forward.__func__ is type(model).forward


def _as_float32(output: Any) -> Any:
    if isinstance(output, torch.Tensor) and output.dtype in (torch.float16, torch.bfloat16):
        return output.float()
    return output


class ScaledOptimizer(torch.optim.Optimizer):
    """An optimizer whose steps undo the scaling of the gradients. All else, and all state, is that of the optimizer in it."""

    def __init__(self, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
        # Not Optimizer.__init__: that would give it parameters and state of its own.
        self._optimizer = optimizer
        self._scaler = scaler

    def __getattr__(self, name: str) -> Any:
        if name in ("_optimizer", "_scaler"):  # not there yet, while it is unpickled
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Step, unless a gradient overflowed."""
        if closure is not None:
            raise ValueError(
                "step(closure) cannot be used with scaled gradients: call backward(loss), and then step() without a "
                "closure, or leave out accelerate(amp=True)"
            )
        self._scaler.step(self._optimizer)
        self._scaler.update()

    # Optimizers override these.

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._optimizer.zero_grad(set_to_none=set_to_none)

    def state_dict(self) -> dict[str, Any]:
        return self._optimizer.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._optimizer.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self._optimizer.add_param_group(param_group)

    def __repr__(self) -> str:
        return repr(self._optimizer)

    def __getstate__(self) -> dict[str, Any]:
        return {"_optimizer": self._optimizer, "_scaler": self._scaler}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
