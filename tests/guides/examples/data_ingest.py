import ray

from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

from trainlib import session


# Datasets can be accessed in your train_func via ``get_dataset_shard``.
def train_func(config):
    train_data_shard = session.get_dataset_shard("train")
    validation_data_shard = session.get_dataset_shard("validation")
    rows = [sum(1 for _ in shard.iter_rows()) for shard in (train_data_shard, validation_data_shard)]
    session.report({"done": 1})
    return rows


# Random split the dataset into 80% training data and 20% validation data.
dataset = ray.data.read_csv(CSV)
train_dataset, validation_dataset = dataset.train_test_split(
    test_size=0.2,
    shuffle=True,
)

trainer = TorchTrainer(
    train_func,
    datasets={"train": train_dataset, "validation": validation_dataset},
    scaling_config=ScalingConfig(num_workers=2),
)
result = trainer.fit()
