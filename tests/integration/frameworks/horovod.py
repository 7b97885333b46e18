"""Horovod, as the tests of all frameworks see it: with torch, and with Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.integration.frameworks.adam import train_with_adam
from tests.integration.frameworks.regression import (
    COLLECTIVE_TIMEOUT_S,
    FEATURES,
    LEARNING_RATE,
    ROWS,
    initial_weight,
    own_rows,
)
from tests.integration.frameworks.tensorflow import model_to_fit
from trainlib._execution.causes import Cause
from trainlib.horovod import HorovodConfig

SETTINGS = HorovodConfig(stall_check_s=2, stall_shutdown_s=COLLECTIVE_TIMEOUT_S)
CAUSES: dict[str, Cause] = {}


def collective() -> Callable[[float], float]:
    import horovod.torch as hvd
    import torch

    hvd.init()
    return lambda value: hvd.allreduce(torch.tensor(value)).item()


def fit(steps: int) -> list[float]:
    import horovod.torch as hvd
    import torch

    hvd.init()
    features, targets = map(torch.from_numpy, own_rows())
    model = torch.nn.Linear(FEATURES, 1, bias=False)
    torch.nn.init.constant_(model.weight, initial_weight())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=LEARNING_RATE), named_parameters=model.named_parameters()
    )
    assert hvd.broadcast_object({"from": hvd.rank()}, root_rank=0) == {"from": 0}
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(features), targets).backward()
        optimizer.step()
    return model.weight.detach().flatten().tolist()


def fit_with_keras(steps: int) -> list[float]:
    import horovod.tensorflow.keras as hvd
    import tensorflow as tf
    from horovod.tensorflow import broadcast_variables

    hvd.init()
    model = model_to_fit(tf)
    broadcast_variables(model.variables, root_rank=0)  # its callback would do so only after the first step
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(LEARNING_RATE)), "mse")
    features, targets = own_rows()
    model.fit(features, targets, batch_size=ROWS, epochs=steps, verbose=0)
    return model.get_weights()[0].flatten().tolist()


FITS = {"horovod": fit, "horovod with keras": fit_with_keras}


def prepare(network: Any, optimizer: Any) -> tuple[Any, Any]:
    import horovod.torch as hvd

    hvd.init()
    return network, hvd.DistributedOptimizer(optimizer, named_parameters=network.named_parameters())


def train(epochs: int, die: Callable[[int], None]) -> None:
    train_with_adam(epochs, die, prepare, collective)


def world_size() -> int:
    import horovod.torch as hvd

    hvd.init()
    return hvd.size()
