#: ours: what the guide leaves open
from typing import Dict

import torch
import torch.nn as nn
import torch.nn.functional as F

data = [torch.ones(1, 1), torch.zeros(1, 1)]

#: guide 004:25
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(1, 128)
        self.fc2 = nn.Linear(128, 1)

    def forward(self, x):
        x = self.fc1(x)
        x = F.relu(x)
        x = self.fc2(x)
        return x

def train_func():
    model = Net()
    for x in data:
        results = model(x)
    return results

#: guide 004:47
from trainlib.sgd import Trainer

trainer = Trainer(backend = "torch", num_workers=2)

#: guide 004:55
trainer.start()
results = trainer.run(train_func)
print(results)

#: guide 004:66
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
import torch.optim as optim

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

#: guide 004:105
all_results = trainer.run(train_simple)

#: ours: the guide does it in its other examples
trainer.shutdown()
