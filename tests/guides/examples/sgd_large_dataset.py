#: ours: the guide begins in the middle of a program
import torch

import trainlib as ray
from trainlib.sgd import Trainer

model = torch.nn.Linear(1, 1, dtype=torch.float64)

#: guide 004:533
def train_func(config):
    batch_size = config["worker_batch_size"]
    data_shard = ray.sgd.get_data_shard()
    #: instead of: dataloader = data_shard.to_torch(batch_size=batch_size)
    #: because: x and y are columns of the table, and to_torch has to know which is which
    dataloader = data_shard.to_torch(label_column="y", batch_size=batch_size)

    for x, y in dataloader:
        output = model(x)
        ...
        #: ours: what the test looks at
        ray.sgd.report(rows=len(y))
    #: guide

    return model

trainer = Trainer(num_workers=8, backend="torch")
#: instead of: dataset = ray.data.read_csv("...").filter().pipeline(length=50)
#: because: "..." stands for a path; filter() has no function; Ray Data streams by itself since pipeline() is gone
dataset = ray.data.read_csv(CSV).filter(lambda row: row["x"] < 80)
#: ours: the guide does it in its other examples
trainer.start()
#: guide

result = trainer.run(
    train_func,
    config={"worker_batch_size": 64},
    dataset=dataset)

#: ours: the guide does it in its other examples
trainer.shutdown()
