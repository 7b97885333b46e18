"""The three deep-learning backends, as the suite that they share sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, session
from trainlib.horovod import HorovodConfig, HorovodTrainer
from trainlib.tensorflow import TensorflowConfig, TensorflowTrainer
from trainlib.torch import TorchConfig, TorchTrainer

BACKENDS = ["torch", "tensorflow", "horovod"]

COLLECTIVE_TIMEOUT_S = 6
"""After so long, a rank that is missing in a collective is an error in these tests."""


def trainer(
    backend: str,
    function: Callable[[dict], Any],
    *,
    scaling_config: ScalingConfig | None = None,
    run_config: RunConfig | None = None,
    **config: Any,
) -> DataParallelTrainer:
    """A trainer of a backend that finds out soon about collectives that hang."""
    common: dict[str, Any] = {
        "train_loop_config": {"backend": backend, **config},
        "scaling_config": scaling_config or ScalingConfig(num_workers=2),
        "run_config": run_config or RunConfig(),
    }
    if backend == "torch":
        return TorchTrainer(function, torch_config=TorchConfig(timeout_s=COLLECTIVE_TIMEOUT_S), **common)
    if backend == "tensorflow":
        return TensorflowTrainer(function, tensorflow_config=TensorflowConfig(timeout_s=COLLECTIVE_TIMEOUT_S), **common)
    stalls = HorovodConfig(stall_check_s=2, stall_shutdown_s=COLLECTIVE_TIMEOUT_S)
    return HorovodTrainer(function, horovod_config=stalls, **common)


def collective(backend: str) -> Callable[[float], float]:
    """Inside a training function: a function that gives the mean of its argument over all ranks."""
    if backend == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.MultiWorkerMirroredStrategy()

        @tf.function
        def mean(value: Any) -> Any:
            def everywhere() -> Any:
                return tf.distribute.get_replica_context().all_reduce("MEAN", tf.identity(value))

            return strategy.run(everywhere)

        return lambda value: float(mean(tf.constant(value)))
    import torch

    if backend == "horovod":
        import horovod.torch as hvd

        hvd.init()
        return lambda value: hvd.allreduce(torch.tensor(value)).item()

    def all_reduce(value: float) -> float:
        tensor = torch.tensor(value)
        torch.distributed.all_reduce(tensor)
        return tensor.item() / session.get_world_size()

    return all_reduce


# -- one model in every framework: linear regression, all of a rank's rows in one batch ------------------

ROWS, FEATURES = 64, 4
LEARNING_RATE = 0.1


def table() -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of all rows."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(ROWS, FEATURES)).astype("float32")
    return features, (features @ np.arange(1.0, FEATURES + 1, dtype="float32"))[:, None]


def own_rows() -> tuple[np.ndarray, np.ndarray]:
    """Inside a training function: the rows of this rank."""
    features, targets = table()
    rank, size = session.get_world_rank(), session.get_world_size()
    return features[rank::size], targets[rank::size]


def initial_weight() -> float:
    """Inside a training function: what this rank starts with, unlike every other one."""
    return 0.5 + session.get_world_rank()


def fit_torch(steps: int) -> list[float]:
    import torch

    from trainlib.torch import prepare_model

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


def fit_tensorflow(steps: int) -> list[float]:
    import tensorflow as tf

    from trainlib.tensorflow import prepare_dataset_shard

    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = _keras_model(tf)
        model.compile(tf.keras.optimizers.SGD(LEARNING_RATE), "mse")
    rows = prepare_dataset_shard(tf.data.Dataset.from_tensor_slices(own_rows()).batch(ROWS))
    model.fit(rows, epochs=steps, verbose=0)
    return model.get_weights()[0].flatten().tolist()


def fit_horovod(steps: int) -> list[float]:
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


def fit_horovod_keras(steps: int) -> list[float]:
    import horovod.tensorflow.keras as hvd
    import tensorflow as tf
    from horovod.tensorflow import broadcast_variables

    hvd.init()
    model = _keras_model(tf)
    broadcast_variables(model.variables, root_rank=0)  # its callback would do so only after the first step
    model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(LEARNING_RATE)), "mse")
    features, targets = own_rows()
    model.fit(features, targets, batch_size=ROWS, epochs=steps, verbose=0)
    return model.get_weights()[0].flatten().tolist()


def _keras_model(tf: Any) -> Any:
    start = tf.constant_initializer(initial_weight())
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer=start, input_shape=(FEATURES,))
    return tf.keras.Sequential([layer])


FITS = {
    "torch": fit_torch,
    "tensorflow": fit_tensorflow,
    "horovod": fit_horovod,
    "horovod with keras": fit_horovod_keras,
}


def fit_in_one_process(steps: int) -> np.ndarray:
    """What rank 0's initial weights become with the full batch and no framework."""
    features, targets = table()
    weights = np.full((FEATURES, 1), 0.5)
    for _ in range(steps):
        weights -= LEARNING_RATE * 2 / ROWS * features.T @ (features @ weights - targets)
    return weights.flatten()
