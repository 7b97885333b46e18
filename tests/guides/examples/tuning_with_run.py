import trainlib as sgd
from trainlib import ScalingConfig, tune
from trainlib.torch import TorchTrainer


def training_func(config):
    # In this example, nothing is expected to change over epochs,
    # and the output metric is equivalent to the input value.
    for _ in range(config["num_epochs"]):
        sgd.report(output=config["input"])


# The guide makes this of RaySGD's own Trainer, with to_tune_trainable().
trainable = TorchTrainer(training_func, scaling_config=ScalingConfig(num_workers=2))
analysis = tune.run(trainable, config={"num_epochs": 2, "input": tune.grid_search([1, 2, 3])})
print(analysis.get_best_config(metric="output", mode="max"))
# {'num_epochs': 2, 'input': 3}
