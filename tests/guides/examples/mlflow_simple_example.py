#: ours: guide 001 includes a file of this name: logging to MLflow and TensorBoard
from trainlib import RunConfig, ScalingConfig, session
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

# The results of all trainings can be compared in MLflow's UI, and in TensorBoard.
print("Run directory:", result.log_dir)
