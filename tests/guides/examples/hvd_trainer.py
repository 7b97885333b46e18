#: ours: guide 003 includes a file of this name. This is a function as Horovod's own Ray executor runs it
import horovod.torch as hvd
import torch
import torch.nn.functional as F


def train_func():
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), op=hvd.Average, compression=hvd.Compression.none
    )
    for _ in range(5):
        data = torch.randn(8, 4)
        optimizer.zero_grad()
        loss = F.mse_loss(model(data), data.sum(1, keepdim=True))
        loss.backward()
        optimizer.step()
    average = hvd.allreduce(loss.detach(), name="avg_loss")
    settings = hvd.broadcast_object({"lr": optimizer.param_groups[0]["lr"]}, root_rank=0)
    return hvd.rank(), hvd.size(), average.item(), settings["lr"], model.weight.tolist()

#: guide 001:208
from trainlib import ScalingConfig
from trainlib.horovod import HorovodTrainer
# For GPU Training, set `use_gpu` to True.
use_gpu = False
trainer = HorovodTrainer(
    train_func,
    scaling_config=ScalingConfig(use_gpu=use_gpu, num_workers=2)
)

#: ours: to show that it runs
trainer.fit()
