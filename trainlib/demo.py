"""The demonstration: a file of handwritten digits, and a small network that learns them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from trainlib import _storage as storage
from trainlib import session
from trainlib._trainable import trainable
from trainlib.checkpoint import Checkpoint

if TYPE_CHECKING:
    import pandas as pd
    import ray.data
    import torch

__all__ = ["digits_file", "evaluate_digits", "predict_digits", "train_digits"]

_TARGET = "target"


def digits_file(part: Literal["train", "validation"] | None = None) -> Path:
    """scikit-learn's digits as a CSV file in trainlib's home folder: a column for each of 64 pixels, and ``target``.

    The file is written once. To train on data of your own, use the path of your own file in its place.

    Args:
        part: Only a part of the rows: each fifth is for validation, the others are for training.
    """
    path = storage.home() / "demo" / (f"digits-{part}.csv" if part else "digits.csv")
    if path.exists():
        return path
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("The demo needs scikit-learn: pip install 'trainlib[sklearn]'") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: the file must not exist before it is complete.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        rows = load_digits(as_frame=True).frame
        is_fifth = rows.index % 5 == 0
        chosen = rows if part is None else rows[is_fifth if part == "validation" else ~is_fifth]
        chosen.to_csv(unfinished, index=False)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


@trainable
def train_digits(config: dict[str, Any]) -> None:
    """Train a classifier on the datasets ``train`` and ``validation``, from the newest checkpoint on.

    Args:
        config: ``target``, ``num_epochs``, ``lr``, ``batch_size`` (of each worker), ``hidden``.
    """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from trainlib.torch import enable_reproducibility, prepare_model

    enable_reproducibility(config.get("seed", 0))

    # So few rows fit into memory. Many would be read batch by batch, with iter_torch_batches().
    train, validation = session.get_dataset_shard("train"), session.get_dataset_shard("validation")
    assert train is not None
    assert validation is not None
    train_x, train_y = _tensors(train.materialize().to_pandas(), config["target"])
    valid_x, valid_y = _tensors(validation.materialize().to_pandas(), config["target"])
    classes = int(max(train_y.max(), valid_y.max())) + 1
    network = nn.Sequential(
        nn.Linear(train_x.shape[1], config["hidden"]), nn.ReLU(), nn.Linear(config["hidden"], classes)
    )
    start = 0
    saved: dict[str, Any] = {}
    if checkpoint := session.get_checkpoint():
        saved = checkpoint.to_dict()
        network.load_state_dict(saved["model"])
        start = saved["epoch"] + 1
    model = prepare_model(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    if saved:
        optimizer.load_state_dict(saved["optimizer"])
    loader = DataLoader(TensorDataset(train_x, train_y), batch_size=config["batch_size"], shuffle=True)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(start, config["num_epochs"]):
        total = 0.0
        for features, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(features), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            accuracy = (network(valid_x).argmax(1) == valid_y).float().mean().item()
        session.report(
            {"loss": total / len(loader), "accuracy": accuracy},
            checkpoint=Checkpoint.from_dict(
                {"epoch": epoch, "model": network.state_dict(), "optimizer": optimizer.state_dict()}
            ),
        )


@trainable
def evaluate_digits(checkpoint: Checkpoint, dataset: ray.data.Dataset) -> dict[str, float]:
    """How well a checkpoint of :func:`train_digits` does on rows that it has not seen.

    Args:
        checkpoint: The checkpoint.
        dataset: The rows, to which the preprocessor of the checkpoint was applied.
    """
    import torch
    from torch import nn

    features, labels = _tensors(dataset.to_pandas(), _TARGET)
    weights = checkpoint.to_dict()["model"]
    hidden, classes = weights["0.weight"].shape[0], weights["2.weight"].shape[0]
    network = nn.Sequential(nn.Linear(features.shape[1], hidden), nn.ReLU(), nn.Linear(hidden, classes))
    network.load_state_dict(weights)
    with torch.no_grad():
        scores = network(features)
        loss = nn.functional.cross_entropy(scores, labels).item()
        return {"accuracy": (scores.argmax(1) == labels).float().mean().item(), "loss": loss}


@trainable
def predict_digits(checkpoint: Checkpoint) -> Callable[[pd.DataFrame], dict[str, Any]]:
    """What predicts with a checkpoint of :func:`train_digits`: for each row, the digit, and how probable it is."""
    import torch
    from torch import nn

    weights = checkpoint.to_dict()["model"]
    (hidden, pixels), classes = weights["0.weight"].shape, len(weights["2.bias"])
    network = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU(), nn.Linear(hidden, classes))
    network.load_state_dict(weights)

    def predict(batch: pd.DataFrame) -> dict[str, Any]:
        rows = batch.drop(columns="target", errors="ignore").to_numpy("float32")
        with torch.no_grad():
            probability, digit = network(torch.from_numpy(rows.copy())).softmax(1).max(1)
        return {"digit": digit.numpy(), "probability": probability.numpy()}

    return predict


def _tensors(table: pd.DataFrame, target: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The features and the labels of a table."""
    import torch

    labels = table.pop(target)
    return torch.from_numpy(table.to_numpy("float32").copy()), torch.from_numpy(labels.to_numpy("int64").copy())
