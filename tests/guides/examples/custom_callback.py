from typing import List, Dict

from trainlib import session, RunConfig, ScalingConfig
from trainlib.torch import TorchTrainer
from trainlib.callbacks import LoggerCallback


# LoggerCallback is a higher level API of Callback.
class LoggingCallback(LoggerCallback):
    def __init__(self) -> None:
        self.results = []

    def log_trial_result(self, iteration: int, trial: "Trial", result: Dict):
        self.results.append(trial.last_result)


def train_func():
    for i in range(3):
        session.report({"epoch": i})


callback = LoggingCallback()
trainer = TorchTrainer(
    train_func,
    run_config=RunConfig(callbacks=[callback]),
    scaling_config=ScalingConfig(num_workers=2),
)
trainer.fit()

print("\n".join([str(x) for x in callback.results]))
