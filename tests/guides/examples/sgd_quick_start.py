from typing import Dict

import torch
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
import torch.optim as optim

from trainlib.sgd import Trainer

trainer = Trainer(backend="torch", num_workers=2)

trainer.start()


def train_simple(config: Dict):

    # N is batch size; D_in is input dimension;
    # H is hidden dimension; D_out is output dimension.
    N, D_in, H, D_out = 8, 5, 5, 5

    # Create random Tensors to hold inputs and outputs
    x = torch.randn(N, D_in)
    y = torch.randn(N, D_out)
    loss_fn = nn.MSELoss()

    # Use the nn package to define our model and loss function.
    model = torch.nn.Sequential(
        torch.nn.Linear(D_in, H),
        torch.nn.ReLU(),
        torch.nn.Linear(H, D_out),
    )
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    model = DistributedDataParallel(model)
    results = []

    for epoch in range(config.get("epochs", 10)):
        optimizer.zero_grad()
        output = model(x)
        loss = loss_fn(output, y)
        loss.backward()
        results.append(loss.item())
        optimizer.step()
    return results


all_results = trainer.run(train_simple)
