import trainlib as train


def train_func():
    import json
    import os

    train.report({"world_size": train.world_size()})
    return json.loads(os.environ["TF_CONFIG"])


from trainlib import ScalingConfig  # noqa: E402
from trainlib.tensorflow import TensorflowTrainer, TensorflowConfig  # noqa: E402

trainer = TensorflowTrainer(
    train_func,
    tensorflow_backend=TensorflowConfig(port_range=(23400, 23499)),
    scaling_config=ScalingConfig(num_workers=2),
)
result = trainer.fit()
