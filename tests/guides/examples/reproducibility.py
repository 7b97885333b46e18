#: ours: what the diff leaves open
import random

import numpy as np
import torch

from trainlib import ScalingConfig, train
from trainlib.torch import TorchTrainer


def NeuralNetwork():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))

#: guide 001:1126 after
def train_func():
    train.torch.enable_reproducibility()

    model = NeuralNetwork()
    model = train.torch.prepare_model(model)

    ...
    #: ours: three steps, and what the test looks at
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(16, 4)).square().mean()
        loss.backward()
        optimizer.step()
        train.report({"loss": loss.item(), "numpy": np.random.rand(), "python": random.random()})

#: ours: to show that it runs
result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
