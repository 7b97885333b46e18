"""PyTorch, as the tests of all frameworks see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.integration.frameworks.adam import train_with_adam
from tests.integration.frameworks.regression import (
    COLLECTIVE_TIMEOUT_S,
    FEATURES,
    LEARNING_RATE,
    initial_weight,
    own_rows,
)
from trainlib import session
from trainlib._execution.causes import Cause
from trainlib.torch import TorchConfig, prepare_model

SETTINGS = TorchConfig(timeout_s=COLLECTIVE_TIMEOUT_S)
CAUSES: dict[str, Cause] = {}


def collective() -> Callable[[float], float]:
    import torch

    def mean(value: float) -> float:
        tensor = torch.tensor(value)
        torch.distributed.all_reduce(tensor)
        return tensor.item() / session.get_world_size()

    return mean


def fit(steps: int) -> list[float]:
    import torch

    features, targets = map(torch.from_numpy, own_rows())
    network = torch.nn.Linear(FEATURES, 1, bias=False)
    torch.nn.init.constant_(network.weight, initial_weight())
    model = prepare_model(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(features), targets).backward()
        optimizer.step()
    return network.weight.detach().flatten().tolist()


FITS = {"torch": fit}


def prepare(network: Any, optimizer: Any) -> tuple[Any, Any]:
    return prepare_model(network), optimizer


def train(epochs: int, die: Callable[[int], None]) -> None:
    train_with_adam(epochs, die, prepare, collective)


def world_size() -> int:
    import torch.distributed

    return torch.distributed.get_world_size()
