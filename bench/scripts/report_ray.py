"""Time per report() under Ray Train V1, until its coordinator has the last one."""

import time

from ray.train import RunConfig, ScalingConfig, get_context, report
from ray.train.torch import TorchTrainer
from ray.tune import Callback

from bench.scripts.side import finish, folder, mark, marked, require_ray_train_v1

REPORTS = 2000


class Recorded(Callback):
    """Records when each result reaches Ray's loggers."""

    results = 0
    last = 0.0

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.results += 1
        self.last = time.time()


def train_func(config):
    started = time.time()
    for step in range(config["reports"]):
        report({"loss": 1.0 / (step + 1), "accuracy": step / config["reports"], "step": step})
    if get_context().get_world_rank() == 0:
        mark(config["folder"] / "started", started)
        mark(config["folder"] / "ended")


require_ray_train_v1()
recorded = Recorded()
TorchTrainer(
    train_func,
    train_loop_config={"reports": REPORTS, "folder": folder()},
    scaling_config=ScalingConfig(num_workers=2, trainer_resources={"CPU": 0}),
    run_config=RunConfig(storage_path=str(folder() / "storage"), callbacks=[recorded]),
).fit()
if recorded.results < REPORTS:
    raise RuntimeError(f"Ray Train recorded {recorded.results} of {REPORTS} reports")
end = max(marked(folder() / "ended"), recorded.last)
finish(report_s=(end - marked(folder() / "started")) / REPORTS)
