"""What both sides of the tuning measurements train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TRIALS = 12

# A trial of Ray Tune takes seconds, so a few are enough to measure one.
MANY = 1000
MANY_RAY = 20


def train_short(config: dict[str, Any], report: Callable[[dict[str, float]], None]) -> None:
    """Three steps of a linear model, in the existing process group."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
    inputs = torch.randn(32, 8)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
        report({"loss": loss.item()})


def trivial(config: dict[str, Any]) -> float:
    """As little as a trial can do."""
    return float(config["x"] ** 2)


EPOCHS = 27
DIGITS_TRIALS = 24
DIGITS_SPACE = {"lr": (1e-4, 1.0), "hidden": (8, 128)}


def train_digits(config: dict[str, Any], report: Callable[[dict[str, float]], None]) -> None:
    """Train a small network on digits. Once per epoch, report the accuracy on a held-out fifth."""
    import torch
    from sklearn.datasets import load_digits
    from torch import nn

    torch.manual_seed(0)
    found = load_digits()
    images = torch.tensor(found.data / 16, dtype=torch.float32)
    labels = torch.tensor(found.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    train, held_out = order[len(order) // 5 :], order[: len(order) // 5]
    model = nn.Sequential(nn.Linear(64, config["hidden"]), nn.ReLU(), nn.Linear(config["hidden"], 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    for _ in range(EPOCHS):
        for batch in train[torch.randperm(len(train))].split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(images[held_out]).argmax(1) == labels[held_out]).float().mean().item()
        report({"accuracy": accuracy})
