"""Reported metrics as plain numbers."""

from __future__ import annotations

from typing import Any

from trainlib.errors import MetricError


def as_numbers(metrics: dict[str, Any], prefix: str = "") -> dict[str, int | float]:
    """Metrics as Python numbers: one-element tensors and arrays are unwrapped, nested dicts joined by "/".

    Example:
        >>> as_numbers({"loss": 0.5, "val": {"acc": 1}})
        {'loss': 0.5, 'val/acc': 1}
    """
    numbers: dict[str, int | float] = {}
    for key, value in metrics.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            numbers.update(as_numbers(value, f"{name}/"))
            continue
        if hasattr(value, "item") and getattr(value, "size", None) is not None:
            value = _item(name, value)
        if not isinstance(value, (int, float)):
            shown = repr(value) if len(repr(value)) < 60 else repr(value)[:57] + "..."
            raise MetricError(
                f"metric {name!r} is {shown}, a {type(value).__name__}: report() takes numbers. Convert it, or leave it "
                "out and print it instead."
            )
        numbers[name] = _bounded(name, value)
    return numbers


def _bounded(name: str, value: int | float) -> int | float:
    try:
        float(value)
    except OverflowError:
        raise MetricError(
            f"metric {name!r} is an integer of {int(value).bit_length()} bits, too large for a number in MLflow. Report its "
            "logarithm, or leave it out."
        ) from None
    return value


def _item(name: str, value: Any) -> Any:
    try:
        return value.item()
    except (ValueError, RuntimeError):
        shape = tuple(value.shape)
        raise MetricError(
            f"metric {name!r} is a {type(value).__name__} of shape {shape}: report() takes single numbers. Reduce it "
            "first, e.g. with .mean().item()."
        ) from None
