"""LightGBM on 2 workers under trainlib: seconds to read the rows, to build the Datasets and to train, and the AUC."""

from bench.scripts import trees
from bench.scripts.side import finish
from trainlib import ScalingConfig
from trainlib.lightgbm import LightGBMTrainer

result = LightGBMTrainer(
    params=trees.LIGHTGBM,
    label_column="label",
    num_boost_round=trees.ROUNDS,
    datasets={"train": trees.in_ray},
    scaling_config=ScalingConfig(num_workers=2),
).fit()
rows, labels = trees.held_out()
predicted = result.checkpoint.get_model().predict(rows)
seconds = max(
    sum(of_rank.values()) - of_rank["wait_s"] for of_rank in result.returned
)  # it waits for Ray to start reading
finish(train_s=seconds, auc=100 * trees.auc(labels, predicted), read_s=max(each["read_s"] for each in result.returned))
