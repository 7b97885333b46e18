"""LightGBM in one process with 2 threads: seconds to build the Dataset and to train, and the AUC."""

import time

import lightgbm
import pyarrow as pa

from bench.scripts import trees
from bench.scripts.side import finish

whole = pa.concat_tables(trees.blocks())
begun = time.perf_counter()
params = {**trees.LIGHTGBM, "num_threads": 2}
data = lightgbm.Dataset(whole.drop_columns("label"), whole["label"].to_numpy(), params=params)
model = lightgbm.train(params, data, trees.ROUNDS, valid_sets=[data], valid_names=["train"])
seconds = time.perf_counter() - begun
rows, labels = trees.held_out()
finish(train_s=seconds, auc=100 * trees.auc(labels, model.predict(rows)))
