#: ours: what the diffs leave open
import torch
from torch.utils.data import TensorDataset

from trainlib import train

worker_batch_size = 8
my_dataset = TensorDataset(torch.arange(16.0).reshape(16, 1) / 16, 3 * torch.arange(16.0).reshape(16, 1) / 16 + 1)
dataset = my_dataset  # the lines that the diff removes have this name for it
ported = {}


def NeuralNetwork():
    torch.manual_seed(0)
    return torch.nn.Linear(1, 1)


def step(model, X, y):
    torch.nn.functional.mse_loss(model(X), y).backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()

#: guide 001:66 before
import torch
from torch.nn.parallel import DistributedDataParallel


def train_func():
    device = torch.device(f"cuda:{train.local_rank()}" if
          torch.cuda.is_available() else "cpu")
    #: instead of: torch.cuda.set_device(device)
    #: because: torch refuses the CPU here, which the line above has just chosen
    torch.cuda.set_device(device) if torch.cuda.is_available() else None

    # Create model.
    model = NeuralNetwork()

    model = model.to(device)
    model = DistributedDataParallel(model,
        device_ids=[train.local_rank()] if torch.cuda.is_available() else None)


    ...
    #: ours: the function below trains it
    return model

#: ours: both diffs have a function of this name
before_001_model = train_func

#: guide 001:94 before
import torch
from torch.utils.data import DataLoader, DistributedSampler


def train_func():
    device = torch.device(f"cuda:{train.local_rank()}" if
           torch.cuda.is_available() else "cpu")
    #: instead of: torch.cuda.set_device(device)
    #: because: torch refuses the CPU here, which the line above has just chosen
    torch.cuda.set_device(device) if torch.cuda.is_available() else None

    ...
    #: ours: the model, as the diff before this one has it
    model, seen = before_001_model(), []
    #: guide

    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size, sampler=DistributedSampler(dataset))


    for X, y in data_loader:
        #: instead of: X = X.to_device(device)
        #: because: tensors have no to_device
        X = X.to(device)
        #: instead of: y = y.to_device(device)
        #: because: tensors have no to_device
        y = y.to(device)
        #: ours: a step, and what the test looks at
        seen += X.flatten().tolist()
        step(model, X, y)
    return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]

#: ours: both diffs have a function of this name
ported["before_001"] = train_func

#: guide 001:66 after
import torch
from torch.nn.parallel import DistributedDataParallel
from trainlib import train
import trainlib as ray


def train_func():

    # Create model.
    model = NeuralNetwork()


    model = train.torch.prepare_model(model)

    ...
    #: ours: the function below trains it
    return model

#: ours: both diffs have a function of this name
after_001_model = train_func

#: guide 001:94 002:63 after
import torch
from torch.utils.data import DataLoader, DistributedSampler
from trainlib import train
import trainlib as ray


def train_func():

    ...
    #: ours: the model, as the diff before this one has it
    model, seen = after_001_model(), []
    #: guide


    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size)
    data_loader = train.torch.prepare_data_loader(data_loader)

    for X, y in data_loader:
        #: ours: a step, and what the test looks at
        seen += X.flatten().tolist()
        step(model, X, y)
    return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]

#: ours: both diffs have a function of this name
ported["after_001"] = train_func

#: guide 002:32 before
import torch
from torch.nn.parallel import DistributedDataParallel


def train_func():
    device = torch.device(f"cuda:{train.get_context().get_local_rank()}" if
        torch.cuda.is_available() else "cpu")
    #: instead of: torch.cuda.set_device(device)
    #: because: torch refuses the CPU here, which the line above has just chosen
    torch.cuda.set_device(device) if torch.cuda.is_available() else None

    # Create model.
    model = NeuralNetwork()

    model = model.to(device)
    model = DistributedDataParallel(model,
        device_ids=[train.get_context().get_local_rank()] if torch.cuda.is_available() else None)


    ...
    #: ours: the function below trains it
    return model

#: ours: both diffs have a function of this name
before_002_model = train_func

#: guide 002:63 before
import torch
from torch.utils.data import DataLoader, DistributedSampler


def train_func():
    device = torch.device(f"cuda:{train.get_context().get_local_rank()}" if
        torch.cuda.is_available() else "cpu")
    #: instead of: torch.cuda.set_device(device)
    #: because: torch refuses the CPU here, which the line above has just chosen
    torch.cuda.set_device(device) if torch.cuda.is_available() else None

    ...
    #: ours: the model, as the diff before this one has it
    model, seen = before_002_model(), []
    #: guide

    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size, sampler=DistributedSampler(dataset))


    for X, y in data_loader:
        #: instead of: X = X.to_device(device)
        #: because: tensors have no to_device
        X = X.to(device)
        #: instead of: y = y.to_device(device)
        #: because: tensors have no to_device
        y = y.to(device)
        #: ours: a step, and what the test looks at
        seen += X.flatten().tolist()
        step(model, X, y)
    return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]

#: ours: both diffs have a function of this name
ported["before_002"] = train_func

#: guide 002:32 after
import torch
from torch.nn.parallel import DistributedDataParallel
from trainlib import session
from trainlib import train
import trainlib as ray


def train_func():

    # Create model.
    model = NeuralNetwork()


    model = train.torch.prepare_model(model)

    ...
    #: ours: the function below trains it
    return model

#: ours: both diffs have a function of this name
after_002_model = train_func

#: guide 002:63 after
import torch
from torch.utils.data import DataLoader, DistributedSampler
from trainlib import train
import trainlib as ray


def train_func():

    ...
    #: ours: the model, as the diff before this one has it
    model, seen = after_002_model(), []
    #: guide


    data_loader = DataLoader(my_dataset, batch_size=worker_batch_size)
    data_loader = train.torch.prepare_data_loader(data_loader)

    for X, y in data_loader:
        #: ours: a step, and what the test looks at
        seen += X.flatten().tolist()
        step(model, X, y)
    return type(model).__name__, seen, [parameter.detach().cpu() for parameter in model.parameters()]

#: ours: both diffs have a function of this name
ported["after_002"] = train_func

#: ours: one training runs them all
def train_func():
    #: guide 001:122
    global_batch_size = worker_batch_size * train.world_size()
    #: ours: and as the later guide has it
    by_the_first = global_batch_size
    #: guide 002:91
    global_batch_size = worker_batch_size * train.get_context().get_world_size()
    #: ours: what the test looks at
    train.report({"global_batch_size": global_batch_size, "by_the_first": by_the_first})
    return {name: function() for name, function in ported.items()}

#: guide 001:181 002:103
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer
# For GPU Training, set `use_gpu` to True.
use_gpu = False
trainer = TorchTrainer(
    train_func,
    scaling_config=ScalingConfig(use_gpu=use_gpu, num_workers=2)
)

#: guide 001:269 002:138
trainer.fit()
