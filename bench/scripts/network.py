"""A small network, trained with DDP: the same function under trainlib and under torchrun."""

from __future__ import annotations

import time
from collections.abc import Callable

BATCH = 64
COPIES_OF_DIGITS = 20
EPOCHS = 7
UNTIMED_STEPS = 20


def train(report: Callable[[dict[str, float]], None]) -> float:
    """Train in the process group that there is; gives samples per second over all ranks.

    ``report`` is called once an epoch, and its time counts.
    """
    import torch
    import torch.distributed as dist
    from sklearn.datasets import load_digits
    from torch import nn

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).div(16).unsqueeze(1).repeat(COPIES_OF_DIGITS, 1, 1, 1)
    labels = torch.tensor(digits.target).repeat(COPIES_OF_DIGITS)
    rank, world_size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(0)
    network = nn.Sequential(
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
    model = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    steps, started = 0, 0.0
    for epoch in range(EPOCHS):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        mine = order[rank::world_size]
        for batch in mine[: len(mine) // BATCH * BATCH].split(BATCH):
            if steps == UNTIMED_STEPS:
                started = time.perf_counter()
            optimizer.zero_grad()
            loss = loss_of(model(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            steps += 1
        report({"epoch": epoch, "loss": loss.item()})
    seconds = time.perf_counter() - started
    return (steps - UNTIMED_STEPS) * BATCH * world_size / seconds
