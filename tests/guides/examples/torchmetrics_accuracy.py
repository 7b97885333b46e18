#: guide 001:913
from typing import List, Dict
from trainlib import session, ScalingConfig
from trainlib.torch import TorchTrainer

import torch
import torchmetrics

def train_func(config):
    preds = torch.randn(10, 5).softmax(dim=-1)
    target = torch.randint(5, (10,))
    #: instead of: accuracy = torchmetrics.functional.accuracy(preds, target).item()
    #: because: torchmetrics asks for the task since 0.11
    accuracy = torchmetrics.functional.accuracy(preds, target, task="multiclass", num_classes=5).item()
    session.report({"accuracy": accuracy})

trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
print(result.metrics["accuracy"])
# 0.20000000298023224
