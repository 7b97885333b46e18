"""Rows per second into 2 training workers under trainlib."""

from bench.scripts.rows import rows_per_s, rows_through_a_map
from bench.scripts.side import finish
from trainlib import DataParallelTrainer, ScalingConfig, session


def train_func():
    speed = rows_per_s(session.get_dataset_shard("train"))
    session.report({"rows_per_s": speed})
    return speed


result = DataParallelTrainer(
    train_func, scaling_config=ScalingConfig(num_workers=2), datasets={"train": rows_through_a_map}
).fit()
finish(rows_per_s=sum(result.returned))
