import trainlib as train
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer


def train_func(config):
    for i in range(config["num_epochs"]):
        train.report({"epoch": i})


trainer = TorchTrainer(train_func, train_loop_config={"num_epochs": 2}, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
# The guide prints "num_epochs" here, but the metric is reported as "epoch".
print(result.metrics["epoch"])
# 1
