"""The demonstration: a file of handwritten digits, and a small network that learns them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trainlib import _storage as storage
from trainlib import session
from trainlib._trainable import trainable
from trainlib.checkpoint import Checkpoint

__all__ = ["digits_file", "train_digits"]


def digits_file() -> Path:
    """scikit-learn's digits as a CSV file in trainlib's home folder: a column for each of 64 pixels, and ``target``.

    The file is written once. To train on data of your own, use the path of your own file in its place.
    """
    path = storage.home() / "demo" / "digits.csv"
    if path.exists():
        return path
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("The demo needs scikit-learn: pip install 'trainlib[sklearn]'") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    # Under another name first: the file must not exist before it is complete.
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        load_digits(as_frame=True).frame.to_csv(part, index=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
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

    def tensors(name: str) -> tuple[torch.Tensor, torch.Tensor]:
        # So few rows fit into memory. Many would be read batch by batch, with iter_torch_batches().
        table = session.get_dataset_shard(name).materialize().to_pandas()
        labels = table.pop(config["target"])
        return torch.from_numpy(table.to_numpy("float32").copy()), torch.from_numpy(labels.to_numpy("int64").copy())

    train_x, train_y = tensors("train")
    valid_x, valid_y = tensors("validation")
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
