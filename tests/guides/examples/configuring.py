#: ours: the guide has these lines for a program that exists
from trainlib import ScalingConfig, session
from trainlib.torch import TorchTrainer

#: guide 000:11 001:280 002:150 before
def train_func():
    #: ours: a body
    session.report({"parameters": 0})

#: guide 000:18 001:287 002:157 before
trainer = TorchTrainer(
    train_func,
    scaling_config=ScalingConfig(num_workers=2)
)

#: ours: to show that it runs
trainer.fit()

#: guide 000:11 001:280 002:150 after
def train_func(config):
    #: ours: a body
    session.report({"parameters": 1, "settings": len(config)})

#: guide 000:18 001:287 002:157 after
config = {} # This should be populated.
trainer = TorchTrainer(
    train_func,
    train_loop_config=config,
    scaling_config=ScalingConfig(num_workers=2)
)

#: ours: to show that it runs
trainer.fit()
