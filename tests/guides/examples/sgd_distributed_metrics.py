#: guide 004:256
from trainlib import sgd
from trainlib.sgd import SGDCallback, Trainer
from typing import List, Dict

import torch
import torchmetrics

class PrintingCallback(SGDCallback):
    def handle_result(self, results: List[Dict], **info):
        print(results)

def train_func(config):
    preds = torch.randn(10, 5).softmax(dim=-1)
    target = torch.randint(5, (10,))
    #: instead of: accuracy = torchmetrics.functional.accuracy(preds, target).item()
    #: because: torchmetrics asks for the task since 0.11
    accuracy = torchmetrics.functional.accuracy(preds, target, task="multiclass", num_classes=5).item()
    sgd.report(accuracy=accuracy)

trainer = Trainer(backend="torch", num_workers=2)
trainer.start()
result = trainer.run(
    train_func,
    callbacks=[PrintingCallback()]
)
# [{'accuracy': 0.20000000298023224, '_timestamp': 1630716913, '_time_this_iter_s': 0.0039408206939697266, '_training_iteration': 1},
#  {'accuracy': 0.10000000149011612, '_timestamp': 1630716913, '_time_this_iter_s': 0.0030548572540283203, '_training_iteration': 1}]
trainer.shutdown()
