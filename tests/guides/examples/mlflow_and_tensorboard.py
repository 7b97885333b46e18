from trainlib import session, RunConfig, ScalingConfig
from trainlib.callbacks import MLflowLoggerCallback, TBXLoggerCallback
from trainlib.torch import TorchTrainer


def train_func():
    for i in range(3):
        session.report({"epoch": i})


trainer = TorchTrainer(
    train_func,
    scaling_config=ScalingConfig(num_workers=2),
    run_config=RunConfig(
        callbacks=[
            MLflowLoggerCallback(experiment_name="train_experiment"),
            TBXLoggerCallback(),
        ],
    ),
)
result = trainer.fit()
