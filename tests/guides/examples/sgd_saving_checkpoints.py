#: guide 004:407
from trainlib import sgd
from trainlib.sgd import Trainer

def train_func(config):
    model = 0 # This should be replaced with a real model.
    for epoch in range(config["num_epochs"]):
        model += epoch
        sgd.save_checkpoint(epoch=epoch, model=model)

trainer = Trainer(backend="torch", num_workers=2)
trainer.start()
trainer.run(train_func, config={"num_epochs": 5})
trainer.shutdown()

print(trainer.latest_checkpoint)
# {'epoch': 4, 'model': 10}

#: guide 004:429
print(trainer.latest_checkpoint_dir)
# /home/ray_results/sgd_2021-09-01_12-00-00/run_001/checkpoints
print(trainer.latest_checkpoint_path)
# /home/ray_results/sgd_2021-09-01_12-00-00/run_001/checkpoints/checkpoint_000005
