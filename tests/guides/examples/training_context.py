import trainlib as train
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer


def train_func():
    context = train.get_context()
    print(f"{context.get_world_rank()} of {context.get_world_size()}, {context.get_local_rank()} on its node")
    assert context.get_world_rank() == train.world_rank()
    assert context.get_world_size() == train.world_size()
    assert context.get_local_rank() == train.local_rank()
    train.report({"rank": context.get_world_rank()})


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
