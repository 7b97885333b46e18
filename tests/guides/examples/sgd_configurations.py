#: guide 004:175
from trainlib.sgd import Trainer

def train_func(config):
    results = []
    for i in range(config["num_epochs"]):
        results.append(i)
    return results

trainer = Trainer(backend="torch", num_workers=2)
trainer.start()
print(trainer.run(train_func, config={"num_epochs": 2}))
# [[0, 1], [0, 1]]
print(trainer.run(train_func, config={"num_epochs": 5}))
# [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
trainer.shutdown()

#: ours: the diffs are for a trainer that runs
trainer = Trainer(backend="torch", num_workers=2)
trainer.start()

#: guide 004:159 before
def train_func():
    #: ours: a body
    return "no config"

#: ours: what the test looks at
print(
#: guide 004:166 before
    trainer.run(train_func)
#: ours: what the test looks at
)

#: guide 004:159 after
def train_func(config):
    #: ours: a body
    return config

#: guide 004:166 after
config = {} # This should be populated.
trainer.run(train_func, config=config)

#: ours: the guide does it in its other examples
trainer.shutdown()
