"""LightGBM on 2 workers under trainlib: seconds to read the rows, to build the Datasets and to train, and the AUC."""

from bench.scripts import trees
from bench.scripts.side import finish
from trainlib import ScalingConfig
from trainlib.lightgbm import LightGBMTrainer

trainer = LightGBMTrainer(
    params=trees.LIGHTGBM,
    label_column="label",
    num_boost_round=trees.ROUNDS,
    datasets={"train": trees.in_ray},
    scaling_config=ScalingConfig(num_workers=2),
)
seconds, read_s, model = trees.seconds_and_model(trainer)
rows, labels = trees.held_out()
finish(train_s=seconds, auc=100 * trees.auc(labels, model.predict(rows)), read_s=read_s)
