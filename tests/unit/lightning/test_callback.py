"""The callback that reports: what it is told to serve."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import pytest
import torch

from trainlib.errors import InvalidArgumentError
from trainlib.lightning import RayTrainReportCallback


class Regression(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = torch.nn.Linear(2, 1)


@pytest.mark.parametrize("model", [torch.nn.Linear(2, 1), "network"], ids=["the network", "its name"])
def test_what_is_no_function_is_named_at_once(model: Any):
    with pytest.raises(InvalidArgumentError, match=r"model is .*: pass a function .*lambda module: module\.network"):
        RayTrainReportCallback(model=model)


@pytest.mark.parametrize(
    ("model", "returned"),
    [
        (lambda module: module.network.state_dict(), "OrderedDict"),
        (lambda module: None, "NoneType"),
        (lambda module: torch.nn.Linear, "type"),
    ],
    ids=["weights", "nothing", "a class"],
)
def test_a_function_that_returns_no_network_is_named_before_the_first_batch(model: Any, returned: str):
    message = f"model returned an object of type {returned}, but has to return the torch.nn.Module to serve"
    with pytest.raises(InvalidArgumentError, match=message):
        RayTrainReportCallback(model=model).on_train_start(pl.Trainer(logger=False), Regression())
