"""TorchCheckpoint: what of a model is saved."""

from __future__ import annotations

import torch

from trainlib.torch import TorchCheckpoint


class Negative(torch.nn.Module):
    """Keeps another network where wrappers keep theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.module = torch.nn.Linear(2, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return -self.module(features)


def test_a_wrapper_is_taken_off_and_a_network_that_looks_like_one_stays_whole():
    model = Negative()
    spread = torch.nn.DataParallel(model)
    for given in (
        model,
        spread,
        torch.compile(model),
        torch.compile(spread),
        torch.nn.DataParallel(torch.compile(model)),
    ):
        found = TorchCheckpoint.from_model(given).get_model()
        assert isinstance(found, Negative)
        assert torch.equal(found(torch.ones(2)), model(torch.ones(2)))
