#: guide 001:627
from trainlib import train
from trainlib import RunConfig, CheckpointConfig, ScalingConfig
from trainlib.torch import TorchTrainer

def train_func():
    for epoch in range(3):
        train.save_checkpoint(epoch=epoch)

checkpoint_config = CheckpointConfig(num_to_keep=0)

trainer = TorchTrainer(
    train_func,
    scaling_config=ScalingConfig(num_workers=2),
    run_config=RunConfig(checkpoint_config=checkpoint_config)
)
trainer.fit()
