"""Time per report() under trainlib, until MLflow has the last point."""

import os
import sqlite3
import threading
import time

from mlflow import MlflowClient

from bench.scripts.side import finish, folder, leave, mark, marked, wait_for
from trainlib import ScalingConfig, get_context, report
from trainlib.torch import TorchTrainer

REPORTS = 2000
METRICS = ("loss", "accuracy", "step")
DATABASE = f"{os.environ['TRAINLIB_HOME']}/mlflow.db"


def train_func(config):
    started = time.time()
    for step in range(config["reports"]):
        report({"loss": 1.0 / (step + 1), "accuracy": step / config["reports"], "step": step})
    if get_context().get_world_rank() == 0:
        leave(config["folder"] / "run", get_context().get_run_id())
        mark(config["folder"] / "started", started)
        mark(config["folder"] / "ended")


def watch() -> None:
    """After the last report, wait until the database has the last point of each metric."""
    wait_for(folder() / "ended")
    run_id = (folder() / "run").read_text()
    query = "SELECT count(*) FROM metrics WHERE run_uuid = ? AND step = ?"
    with sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True) as database:
        while database.execute(query, (run_id, REPORTS)).fetchone()[0] < len(METRICS):
            time.sleep(0.01)
    mark(folder() / "recorded")


watcher = threading.Thread(target=watch, daemon=True)
watcher.start()
result = TorchTrainer(
    train_func,
    train_loop_config={"reports": REPORTS, "folder": folder()},
    scaling_config=ScalingConfig(num_workers=2),
).fit()
watcher.join(timeout=5.0)

client = MlflowClient(f"sqlite:///{DATABASE}")
for metric in METRICS:
    steps = sorted(point.step for point in client.get_metric_history(result.run_id, metric))
    if steps != list(range(1, REPORTS + 1)):
        raise RuntimeError(f"MLflow has {len(steps)} points of {metric!r}, {REPORTS} were reported")
end = max(marked(folder() / "ended"), marked(folder() / "recorded"))
finish(report_s=(end - marked(folder() / "started")) / REPORTS)
