"""Lightning in a TorchTrainer: gradients are averaged, a retry resumes, and what does not fit is named."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.integration.frameworks.regression import FEATURES, LEARNING_RATE, ROWS, table
from tests.without_trainlib import predictions_without_trainlib
from trainlib import DataParallelTrainer, FailureConfig, RunConfig, ScalingConfig, TrainingFailedError, session
from trainlib._prediction.model_names import find_model
from trainlib._registry.models import promote_checkpoint
from trainlib._registry.store import current_store
from trainlib.errors import InvalidArgumentError
from trainlib.flows import predict
from trainlib.lightning import RayDDPStrategy, RayLightningEnvironment, RayTrainReportCallback, prepare_trainer
from trainlib.torch import TorchCheckpoint, TorchTrainer

EPOCHS = 4
MOMENTUM = 0.9
TWO = ScalingConfig(num_workers=2)


def fit_in_one_process() -> np.ndarray:
    """What rank 0's initial weights become with the full batch and no framework."""
    features, targets = table()
    weights, velocity = np.zeros((FEATURES, 1)), np.zeros((FEATURES, 1))
    for _ in range(EPOCHS):
        velocity = MOMENTUM * velocity + 2 / ROWS * features.T @ (features @ weights - targets)
        weights -= LEARNING_RATE * velocity
    return weights.flatten()


def network(weight: float) -> Any:
    """A Lightning module, whose class is made where Lightning is."""
    import lightning.pytorch as pl
    import torch

    class Network(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(FEATURES, 1, bias=False)
            torch.nn.init.constant_(self.layer.weight, weight)

        def training_step(self, batch: Any, index: int) -> Any:
            features, targets = batch
            loss = torch.nn.functional.mse_loss(self.layer(features), targets)
            self.log("loss", loss, on_epoch=True, sync_dist=True)
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            features, targets = batch
            self.log("val_loss", torch.nn.functional.mse_loss(self.layer(features), targets), sync_dist=True)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)

    return Network()


def loader(batch_size: int) -> Any:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(*map(torch.from_numpy, table())), batch_size=batch_size)


QUIET: dict[str, Any] = {
    "max_epochs": EPOCHS,
    "accelerator": "cpu",
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "logger": False,
    "log_every_n_steps": 1,
}


def trainer(*callbacks: Any, **options: Any) -> Any:
    import lightning.pytorch as pl

    return pl.Trainer(
        **{
            **QUIET,
            "strategy": RayDDPStrategy(),
            "plugins": [RayLightningEnvironment()],
            "callbacks": [RayTrainReportCallback(model=lambda module: module.layer), *callbacks],
            **options,
        }
    )


def fits(config: dict) -> list[float]:
    import lightning.pytorch as pl

    class Dies(pl.Callback):
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            if config.get("dies") and session.get_context().get_attempt() == 1 and trainer.current_epoch == 2:
                while not Path(session.get_trial_dir(), "checkpoints", "checkpoint_000001").exists():
                    time.sleep(0.05)  # until the checkpoint of the last epoch is kept
                if session.get_world_rank() == 1:
                    os.kill(os.getpid(), signal.SIGKILL)

    ready = prepare_trainer(trainer(Dies()))
    model = network(weight=float(session.get_world_rank()))  # rank 0's is what all begin with
    batches = loader(ROWS // session.get_world_size())  # all of a rank's rows
    checkpoint = session.get_checkpoint()
    if checkpoint is None:
        ready.fit(model, batches, loader(ROWS))
    else:
        with checkpoint.as_directory() as folder:
            ready.fit(model, batches, loader(ROWS), ckpt_path=f"{folder}/checkpoint.ckpt")
    return model.layer.weight.detach().flatten().tolist()


def test_gradients_are_averaged_metrics_recorded_and_the_registered_network_predicts_without_trainlib(curve, tmp_path):
    result = TorchTrainer(fits, train_loop_config={}, scaling_config=TWO).fit()
    first, second = result.returned
    assert first == second, "both ranks have the same weights"
    np.testing.assert_allclose(first, fit_in_one_process(), rtol=1e-5)

    assert [step for step, _ in curve(result.run_id, "loss_epoch")] == list(range(1, EPOCHS + 1))
    assert result.metrics["epoch"] == EPOCHS - 1
    assert result.metrics["step"] == EPOCHS, "one batch of each rank an epoch: the data are split"
    assert result.metrics["val_loss"] < result.metrics_dataframe["val_loss"][0]
    assert isinstance(result.checkpoint, TorchCheckpoint)
    model = result.checkpoint.get_model(network(weight=0.0))
    assert model.layer.weight.detach().flatten().tolist() == first
    assert result.checkpoint.get_model().weight.detach().flatten().tolist() == first, "the network alone"

    promote_checkpoint(find_model(result.run_id).model_id, "lines")
    rows = pd.DataFrame(table()[0], columns=[f"x{index}" for index in range(FEATURES)])
    expected = rows.to_numpy() @ np.array(first)
    store = {"MLFLOW_TRACKING_URI": current_store().uri}
    elsewhere, _ = predictions_without_trainlib({"models:/lines@best": rows}, **store)
    np.testing.assert_allclose(np.ravel(elsewhere["models:/lines@best"]), expected, rtol=1e-5)
    rows.to_parquet(tmp_path / "rows.parquet")
    written = predict("models:/lines@best", str(tmp_path / "rows.parquet"), num_workers=1, storage_path=str(tmp_path))
    predicted = pd.read_parquet([str(each) for each in Path(written.folder).glob("*.parquet")])
    np.testing.assert_allclose(predicted["prediction_0"], expected, rtol=1e-5)


def test_a_lost_worker_resumes_in_the_same_run_with_one_clean_curve(curve, newest_run):
    retry = RunConfig(name="lightning-resumes", failure_config=FailureConfig(max_failures=1))
    result = TorchTrainer(fits, train_loop_config={"dies": True}, scaling_config=TWO, run_config=retry).fit()
    assert result.attempts == 2
    assert newest_run("lightning-resumes").info.run_id == result.run_id
    assert curve(result.run_id, "epoch") == [(step, step - 1) for step in range(1, EPOCHS + 1)]
    assert curve(result.run_id, "step") == [(step, step) for step in range(1, EPOCHS + 1)]
    np.testing.assert_allclose(
        result.returned[0], fit_in_one_process(), rtol=1e-5, err_msg="as if nothing had happened"
    )


def refuses() -> dict[str, str]:
    """What is said of each Trainer that does not fit, by what is wrong with it."""
    wrong: dict[str, dict[str, Any]] = {
        "strategy": {"strategy": "auto"},
        "plugins": {"plugins": None},
        "devices": {"devices": 3},
        "num_nodes": {"num_nodes": 2},
    }
    said = {}
    for what, options in wrong.items():
        with pytest.raises(InvalidArgumentError) as raised:
            prepare_trainer(trainer(**options))
        said[what] = str(raised.value)
    for name in ("timeout", "process_group_backend"):
        with pytest.raises(InvalidArgumentError) as raised:
            RayDDPStrategy(**{name: 3})
        said[name] = str(raised.value)
    with pytest.raises(InvalidArgumentError) as raised:
        prepare_trainer(network(0.0))
    said["trainer"] = str(raised.value)
    return said


def test_a_trainer_that_does_not_fit_is_named_with_what_to_change():
    said = TorchTrainer(refuses).fit().returned[0]
    assert "SingleDeviceStrategy" in said["strategy"]
    assert "Trainer(strategy=trainlib.lightning.RayDDPStrategy())" in said["strategy"]
    assert "Trainer(plugins=[trainlib.lightning.RayLightningEnvironment()])" in said["plugins"]
    assert "Use Trainer(devices='auto') and ScalingConfig(num_workers=3)" in said["devices"]
    assert "Trainer(num_nodes=2)" in said["num_nodes"]
    assert "TorchConfig(timeout_s=...)" in said["timeout"]
    assert "TorchConfig(backend=...)" in said["process_group_backend"]
    assert "takes Lightning's Trainer, but got a Network" in said["trainer"]


def test_without_a_process_group_an_error_names_the_trainer_to_use():
    with pytest.raises(TrainingFailedError, match=r"Run this function with trainlib\.torch\.TorchTrainer"):
        DataParallelTrainer(fits, train_loop_config={}).fit()
