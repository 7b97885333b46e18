"""The lines that the porting diff takes away: they go on working. Two of them do not run as printed in the guide:
``torch.cuda.set_device`` takes no CPU, and tensors have ``to``, not ``to_device``."""

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
import trainlib as train
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

worker_batch_size = 8
my_dataset = TensorDataset(torch.arange(16.0).reshape(16, 1) / 16, 3 * torch.arange(16.0).reshape(16, 1) / 16 + 1)


def NeuralNetwork():  # noqa: N802
    torch.manual_seed(0)
    return torch.nn.Linear(1, 1)


def train_func():
    device = torch.device(f"cuda:{train.get_context().get_local_rank()}" if torch.cuda.is_available() else "cpu")
    if torch.cuda.is_available():
        torch.cuda.set_device(device)

    # Create model.
    model = NeuralNetwork()

    model = model.to(device)
    model = DistributedDataParallel(
        model, device_ids=[train.get_context().get_local_rank()] if torch.cuda.is_available() else None
    )

    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size, sampler=DistributedSampler(my_dataset))

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    for epoch in range(5):
        for X, y in data_loader:
            X = X.to(device)
            y = y.to(device)
            seen += X.flatten().tolist()
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(X), y)
            loss.backward()
            optimizer.step()
        train.report({"epoch": epoch, "loss": loss.item()})
    return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
