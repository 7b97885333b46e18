"""The same script under Ray Train V1."""

from ray.train import RunConfig, ScalingConfig, report
from ray.train.torch import TorchTrainer

from bench.scripts.side import folder, mark, require_ray_train_v1
from bench.scripts.whole_script import LAST_LINE


def train_func():
    report({"loss": 0.0})


require_ray_train_v1()
result = TorchTrainer(
    train_func,
    scaling_config=ScalingConfig(num_workers=2, trainer_resources={"CPU": 0}),  # as in start_ray
    run_config=RunConfig(storage_path=str(folder() / "storage")),
).fit()
assert result.metrics["loss"] == 0.0
mark(folder() / LAST_LINE)
