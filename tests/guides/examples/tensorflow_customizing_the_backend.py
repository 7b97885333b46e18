#: ours: the function that the text speaks of
from trainlib import train


def train_func():
    import json
    import os

    train.report({"world_size": train.world_size()})
    return json.loads(os.environ["TF_CONFIG"])

#: guide 001:237
from trainlib import ScalingConfig
from trainlib.tensorflow import TensorflowTrainer, TensorflowConfig

trainer = TensorflowTrainer(
    train_func,
    #: instead of: tensorflow_backend=TensorflowConfig(...),
    #: because: ... stands for one's own settings
    tensorflow_backend=TensorflowConfig(port_range=(23400, 23499)),
    scaling_config=ScalingConfig(num_workers=2),
)

#: ours: to show that it runs
trainer.fit()
