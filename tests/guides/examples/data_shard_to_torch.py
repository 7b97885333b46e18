import ray

import trainlib as train
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer


def train_func(config):
    batch_size = config["worker_batch_size"]
    data_shard = train.get_dataset_shard()
    dataloader = data_shard.to_torch(label_column="y", batch_size=batch_size)

    seen = 0
    for x, y in dataloader:
        assert x.shape[0] == y.shape[0] <= batch_size
        seen += len(y)
    train.report({"seen": seen})
    return seen


dataset = ray.data.read_csv(CSV).filter(lambda row: row["x"] < 90)

trainer = TorchTrainer(
    train_func,
    train_loop_config={"worker_batch_size": 8},
    datasets={"train": dataset},
    scaling_config=ScalingConfig(num_workers=2),
)
result = trainer.fit()
