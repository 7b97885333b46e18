from trainlib import session, Checkpoint, ScalingConfig
from trainlib.torch import TorchTrainer


def train_func(config):
    for i in range(config["num_epochs"]):
        session.report({"epoch": i}, checkpoint=Checkpoint.from_dict({"epoch": i}))


trainer = TorchTrainer(train_func, train_loop_config={"num_epochs": 2}, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()

from pprint import pprint  # noqa: E402

pprint(result.metrics)

print(result.metrics_dataframe)

result.checkpoint  # last saved checkpoint
result.best_checkpoints  # N best saved checkpoints, as configured in run_config
result.error  # returns the Exception if training failed.

print(result.log_dir)
