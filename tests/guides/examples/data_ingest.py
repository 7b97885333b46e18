#: ours: the guide begins in the middle of a program
import ray

from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

#: guide 000:140 001:405
from trainlib import session

# Datasets can be accessed in your train_func via ``get_dataset_shard``.
def train_func(config):
    train_data_shard = session.get_dataset_shard("train")
    validation_data_shard = session.get_dataset_shard("validation")
    ...
    #: ours: what the test looks at
    return [sum(1 for _ in shard.iter_rows()) for shard in (train_data_shard, validation_data_shard)]
#: guide

# Random split the dataset into 80% training data and 20% validation data.
#: instead of: dataset = ray.data.read_csv("...")
#: because: "..." stands for the path of a file
dataset = ray.data.read_csv(CSV)
train_dataset, validation_dataset = dataset.train_test_split(
    test_size=0.2, shuffle=True,
)

trainer = TorchTrainer(
    train_func,
    datasets={"train": train_dataset, "validation": validation_dataset},
    scaling_config=ScalingConfig(num_workers=8),
)
trainer.fit()
