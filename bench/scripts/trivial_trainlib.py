"""A user's script that trains nothing, with 2 workers: one report each."""

from bench.scripts.side import folder, mark
from bench.scripts.whole_script import LAST_LINE
from trainlib import ScalingConfig, report
from trainlib.torch import TorchTrainer


def train_func():
    report({"loss": 0.0})


result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
assert result.metrics["loss"] == 0.0
mark(folder() / LAST_LINE)
