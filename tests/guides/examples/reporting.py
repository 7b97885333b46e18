from trainlib import session
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

num_epochs = 3


class Model:
    def __init__(self):
        self.trained = 0

    def train(self, step):
        self.trained += step
        return self.trained


def train_func():
    # Ranks report different numbers.
    model = Model()
    for i in range(num_epochs):
        result = model.train(1 if session.get_world_rank() == 0 else 100)
        session.report({"result": result})


trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
print(result.metrics["result"])
