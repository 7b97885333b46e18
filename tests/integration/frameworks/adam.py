"""Adam on the regression, by hand in torch, for every framework that trains torch's models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.integration.frameworks.regression import FEATURES, own_rows
from trainlib import Checkpoint, session

Prepare = Callable[[Any, Any], tuple[Any, Any]]
"""Gives a network and its optimizer as the framework wants them."""


def train_with_adam(
    epochs: int, die: Callable[[int], None], prepare: Prepare, collective: Callable[[], Callable[[float], float]]
) -> None:
    """Train from the newest checkpoint on, and save each epoch."""
    import torch

    features, targets = map(torch.from_numpy, own_rows())
    network = torch.nn.Linear(FEATURES, 1)
    for parameter in network.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    model, optimizer = prepare(network, torch.optim.Adam(network.parameters(), lr=0.05))
    start = 0
    if checkpoint := session.get_checkpoint():
        saved = checkpoint.to_dict()
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["epoch"] + 1
    mean = collective()
    for epoch in range(start, epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(features), targets)
        loss.backward()
        optimizer.step()
        state = {"epoch": epoch, "model": network.state_dict(), "optimizer": optimizer.state_dict()}
        session.report({"loss": mean(loss.item())}, checkpoint=Checkpoint.from_dict(state))
        die(epoch)
        mean(0.0)
