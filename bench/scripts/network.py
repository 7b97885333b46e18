"""The same small network on digits in every framework, for training under trainlib and under other launchers.

Each function returns samples per second over all ranks. It calls ``report`` once per epoch, and that time counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

BATCH = 256
COPIES_OF_DIGITS = 20
# These take about 20 s.
EPOCHS = {"torch": 14, "horovod": 14, "keras": 6, "lightning": 20}
# Frameworks and launchers still load in the background during the first steps. That is not compared.
UNTIMED_S = 5.0

Report = Callable[[dict[str, float]], None]


def digits() -> tuple[Any, Any]:
    """Images, as (row, height, width), and their labels."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = (found.images / 16).astype("float32")
    return images.repeat(COPIES_OF_DIGITS, axis=0), found.target.repeat(COPIES_OF_DIGITS)


class Stopwatch:
    """Times steps, except those of the first seconds."""

    def __init__(self, world_size: int, batch: int = BATCH) -> None:
        self._samples = world_size * batch
        self._first: float | None = None
        self._started: float | None = None
        self._steps = 0

    def step(self) -> None:
        """A step is done."""
        now = time.perf_counter()
        self._first = self._first or now
        if self._started is not None:
            self._steps += 1
        elif now - self._first > UNTIMED_S:
            self._started = now

    def samples_per_s(self) -> float:
        """Samples per second over all ranks, so far."""
        if self._started is None:
            raise RuntimeError(f"the training ended within {UNTIMED_S} s: raise EPOCHS")
        return self._steps * self._samples / (time.perf_counter() - self._started)


def train_ddp(report: Report) -> float:
    """Train in the existing torch process group."""
    import torch.distributed as dist
    from torch import nn

    network = _torch_network()
    model = nn.parallel.DistributedDataParallel(network)
    return _train_torch(model, _sgd(model), dist.get_rank(), dist.get_world_size(), EPOCHS["torch"], report)


def train_horovod(report: Report) -> float:
    """Train in the Horovod job of this process."""
    import horovod.torch as hvd

    hvd.init()
    model = _torch_network()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(_sgd(model), named_parameters=model.named_parameters())
    return _train_torch(model, optimizer, hvd.rank(), hvd.size(), EPOCHS["horovod"], report)


def train_lightning(world_size: int, **options: Any) -> float:
    """Train with a Lightning ``Trainer`` of these options. Its callbacks report and save."""
    import lightning.pytorch as pl
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    class Network(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network = _torch_network()

        def training_step(self, batch: Any, index: int) -> Any:
            images, labels = batch
            loss = torch.nn.functional.cross_entropy(self.network(images), labels)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return _sgd(self)

    class Timed(pl.Callback):
        def on_train_batch_end(self, *_: Any) -> None:
            watch.step()

    watch = Stopwatch(world_size)
    images, labels = map(torch.from_numpy, digits())
    rows = DataLoader(TensorDataset(images.unsqueeze(1), labels), batch_size=BATCH, shuffle=True, drop_last=True)
    trainer = pl.Trainer(
        max_epochs=EPOCHS["lightning"],
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{**options, "callbacks": [Timed(), *options["callbacks"]]},
    )
    trainer.fit(Network(), rows)
    return watch.samples_per_s()


def train_keras(report: Report) -> float:
    """Train in the cluster of TF_CONFIG."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    rank, world_size = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [
                layers.Conv2D(16, 3, padding="same", activation="relu", input_shape=(8, 8, 1)),
                layers.Conv2D(32, 3, padding="same", activation="relu"),
                layers.MaxPool2D(2),
                layers.Flatten(),
                layers.Dense(64, activation="relu"),
                layers.Dense(10),
            ]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.05, momentum=0.9), loss)

    images, labels = digits()
    rows = tf.data.Dataset.from_tensor_slices((images[rank::world_size, :, :, None], labels[rank::world_size]))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    watch = Stopwatch(world_size)
    callback = tf.keras.callbacks.LambdaCallback(
        on_batch_end=lambda batch, logs: watch.step(),
        on_epoch_end=lambda epoch, logs: report({"epoch": epoch, "loss": logs["loss"]}),
    )
    batches = rows.cache().shuffle(1000, seed=0).batch(BATCH, drop_remainder=True).with_options(options)
    model.fit(batches.prefetch(tf.data.AUTOTUNE), epochs=EPOCHS["keras"], verbose=0, callbacks=[callback])
    return watch.samples_per_s()


def _torch_network() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def _sgd(model: Any) -> Any:
    import torch

    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def _train_torch(model: Any, optimizer: Any, rank: int, world_size: int, epochs: int, report: Report) -> float:
    import torch

    images, labels = map(torch.from_numpy, digits())
    images = images.unsqueeze(1)
    loss_of = torch.nn.CrossEntropyLoss()
    watch = Stopwatch(world_size)
    for epoch in range(epochs):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        mine = order[rank::world_size]
        for batch in mine[: len(mine) // BATCH * BATCH].split(BATCH):
            optimizer.zero_grad()
            loss = loss_of(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            watch.step()
        report({"epoch": epoch, "loss": loss.item()})
    return watch.samples_per_s()
