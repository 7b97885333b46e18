#: ours: what the diff leaves open
import torch
from torch.utils.data import DataLoader, TensorDataset

from trainlib import ScalingConfig, train
from trainlib.torch import TorchTrainer

worker_batch_size = 8
my_dataset = TensorDataset(torch.eye(4).repeat(8, 1), torch.arange(4).repeat(8))


class NeuralNetwork(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, images):
        hidden = self.linear(images)
        self.computed_in = hidden.dtype
        return hidden

#: guide 001:1083 after
def train_func():
    train.torch.accelerate(amp=True)

    model = NeuralNetwork()
    model = train.torch.prepare_model(model)

    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size)
    data_loader = train.torch.prepare_data_loader(data_loader)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    optimizer = train.torch.prepare_optimizer(optimizer)

    model.train()
    for epoch in range(90):
        #: instead of: for images, targets in dataloader:
        #: because: it is called data_loader where it is made
        for images, targets in data_loader:
            optimizer.zero_grad()

            outputs = model(images)
            loss = torch.nn.functional.cross_entropy(outputs, targets)

            train.torch.backward(loss)
            optimizer.step()
        #: ours: what the test looks at
        train.report({"epoch": epoch, "loss": loss.item()})
    #: guide
    ...
    #: ours: what the test looks at
    return {
        "computed_in": str(model.module.computed_in),
        "outputs": str(outputs.dtype),
        "weights": model.module.linear.weight.detach(),
    }

#: ours: to show that it runs
result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
