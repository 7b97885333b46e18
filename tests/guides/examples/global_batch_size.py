import torch.distributed
from torch.utils.data import DataLoader
import trainlib as train
import trainlib.torch
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

worker_batch_size = 4


def train_func():
    global_batch_size = worker_batch_size * train.get_context().get_world_size()
    assert global_batch_size == worker_batch_size * train.world_size()

    data_loader = train.torch.prepare_data_loader(DataLoader(range(24), batch_size=worker_batch_size))
    for batch in data_loader:
        together = torch.tensor(len(batch))
        torch.distributed.all_reduce(together)
        train.report({"global_batch_size": global_batch_size, "trained_together": together.item()})


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
