"""Samples per second of a transformers.Trainer on 2 workers under trainlib, which streams the rows to them."""

import pandas as pd

from bench.scripts.side import finish
from bench.scripts.small_transformer import make_trainer, rows
from trainlib import ScalingConfig
from trainlib.huggingface import TransformersTrainer

result = TransformersTrainer(
    make_trainer, scaling_config=ScalingConfig(num_workers=2), datasets={"train": pd.DataFrame(rows())}
).fit()
finish(samples_per_s=result.metrics["samples_per_s"])
