import random

import numpy as np
import torch
import trainlib as train
import trainlib.torch
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer


def NeuralNetwork():  # noqa: N802
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))


def train_func():
    train.torch.enable_reproducibility()

    model = NeuralNetwork()
    model = train.torch.prepare_model(model)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 4)).square().mean()
        loss.backward()
        optimizer.step()
        train.report({"loss": loss.item(), "numpy": np.random.rand(), "python": random.random()})


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
