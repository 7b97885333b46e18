#: guide 002:169
from trainlib import train
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

def train_func(config):
    for i in range(config["num_epochs"]):
        train.report({"epoch": i})

trainer = TorchTrainer(
    train_func,
    train_loop_config={"num_epochs": 2},
    scaling_config=ScalingConfig(num_workers=2)
)
result = trainer.fit()
#: instead of: print(result.metrics["num_epochs"])
#: because: the function reports "epoch", and nothing reports "num_epochs"
print(result.metrics["epoch"])
# 1
