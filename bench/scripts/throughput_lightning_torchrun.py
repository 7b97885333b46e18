"""Samples per second of Lightning's Trainer under torchrun, which starts this file twice."""

import os

import torch.distributed as dist
from lightning.pytorch.callbacks import ModelCheckpoint

from bench.scripts.network import train_lightning
from bench.scripts.side import finish, folder

saving = ModelCheckpoint(dirpath=folder() / "checkpoints", save_top_k=-1)
speed = train_lightning(world_size=2, strategy="ddp", devices=2, callbacks=[saving])
if os.environ["RANK"] == "0":
    finish(samples_per_s=speed)
dist.destroy_process_group()  # or else its threads may end the process with SIGABRT
