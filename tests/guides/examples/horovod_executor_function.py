# A training function as it is written for Horovod's own Ray executor, which knows nothing of a trainer.
import horovod.torch as hvd
import torch
import torch.nn.functional as F


def train_func():
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())

    # Horovod: broadcast parameters & optimizer state.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    # Horovod: wrap optimizer with DistributedOptimizer.
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
    return average.item(), settings["lr"], model.weight.tolist()


from trainlib import ScalingConfig  # noqa: E402
from trainlib.horovod import HorovodTrainer  # noqa: E402

trainer = HorovodTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
