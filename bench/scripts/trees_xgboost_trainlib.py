"""XGBoost on 2 workers under trainlib: seconds to read the rows, to build the matrices and to train, and the AUC."""

import xgboost

from bench.scripts import trees
from bench.scripts.side import finish
from trainlib import ScalingConfig
from trainlib.xgboost import XGBoostTrainer

result = XGBoostTrainer(
    params=trees.XGBOOST,
    label_column="label",
    num_boost_round=trees.ROUNDS,
    datasets={"train": trees.in_ray},
    scaling_config=ScalingConfig(num_workers=2),
).fit()
rows, labels = trees.held_out()
predicted = result.checkpoint.get_model().predict(xgboost.DMatrix(rows))
seconds = max(
    sum(of_rank.values()) - of_rank["wait_s"] for of_rank in result.returned
)  # it waits for Ray to start reading
finish(train_s=seconds, auc=100 * trees.auc(labels, predicted), read_s=max(each["read_s"] for each in result.returned))
