"""XGBoost in one process with 2 threads: seconds to build the matrix and to train, and the AUC."""

import time

import pyarrow as pa
import xgboost

from bench.scripts import trees
from bench.scripts.side import finish

whole = pa.concat_tables(trees.blocks())
begun = time.perf_counter()
features, target = whole.drop_columns("label"), whole["label"].to_numpy()
matrix = xgboost.QuantileDMatrix(features, target, nthread=2)
params = {**trees.XGBOOST, "nthread": 2}
model = xgboost.train(params, matrix, trees.ROUNDS, evals=[(matrix, "train")], verbose_eval=False)
seconds = time.perf_counter() - begun
rows, labels = trees.held_out()
finish(train_s=seconds, auc=100 * trees.auc(labels, model.predict(xgboost.DMatrix(rows))))
