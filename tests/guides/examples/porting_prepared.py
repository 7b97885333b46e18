"""The lines that the porting diff adds."""

import torch
from torch.utils.data import DataLoader, TensorDataset
import trainlib as train
import trainlib.torch
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

worker_batch_size = 8
my_dataset = TensorDataset(torch.arange(16.0).reshape(16, 1) / 16, 3 * torch.arange(16.0).reshape(16, 1) / 16 + 1)


def NeuralNetwork():  # noqa: N802
    torch.manual_seed(0)
    return torch.nn.Linear(1, 1)


def train_func():
    # Create model.
    model = NeuralNetwork()

    model = train.torch.prepare_model(model)

    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size)
    data_loader = train.torch.prepare_data_loader(data_loader)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for epoch in range(5):
        for X, y in data_loader:
            seen += X.flatten().tolist()
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(X), y)
            loss.backward()
            optimizer.step()
        train.report({"epoch": epoch, "loss": loss.item()})
    return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
