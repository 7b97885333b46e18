"""Samples per second of a transformers.Trainer on 2 workers under torchrun, which starts this file twice."""

import os

import torch.distributed as dist

from bench.scripts.side import finish, folder
from bench.scripts.small_transformer import make_trainer, rows

os.chdir(folder())
trainer = make_trainer(rows())
trainer.train()
if trainer.is_world_process_zero():
    finish(samples_per_s=next(each["samples_per_s"] for each in trainer.state.log_history if "samples_per_s" in each))
dist.destroy_process_group()  # or else its threads may end the process with SIGABRT
