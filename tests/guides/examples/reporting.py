#: ours: what the guide leaves open: ranks report different numbers
from trainlib import ScalingConfig
from trainlib.torch import TorchTrainer

num_epochs = 3


class Model:
    trained = 0

    def train(self, _):
        self.trained += 1 if session.get_world_rank() == 0 else 100
        return self.trained


model = Model()

#: guide 000:205 001:471
from trainlib import session

def train_func():
    ...
    for i in range(num_epochs):
        result = model.train(...)
        session.report({"result": result})

#: ours: to show that it runs
result = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2)).fit()
