"""The flow that trains. ``Trainer.fit()`` runs it, and so does a deployment."""

from __future__ import annotations

import time

from prefect.runtime import flow_run

from trainlib._registry import tags
from trainlib._training.display import Display
from trainlib._training.notebook import screen_for
from trainlib._training.opening import open_training
from trainlib._training.retry_policy import most_retries
from trainlib._training.training import Training
from trainlib.callbacks._mlflow import store_of
from trainlib.errors import TrainingFailedError
from trainlib.flows._describing import describe_flow_run, kept_name, tags_of, title_of
from trainlib.flows._embedded import flow_run_url
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._form_flow import form_flow
from trainlib.flows._interrupted import mark_interrupted
from trainlib.flows._local import shows_trainings
from trainlib.flows._notifying import notifies
from trainlib.flows._suspending import suspension_raised
from trainlib.flows.forms import (
    CheckpointSection,
    DataSection,
    DatasetPaths,
    EnvironmentSection,
    FailureSection,
    NumWorkers,
    RunSection,
    ScalingSection,
    TrainerChoice,
)
from trainlib.flows.spec import TrainSpec
from trainlib.result import Result
from trainlib.tasks._prefect_screen import show_report
from trainlib.tasks._stopped import result_in, shown_as_stopped
from trainlib.tasks.train import train as train_task
from trainlib.trainer import InspectedTrainer

__all__ = ["train"]


# How long the end of a training waits until its report is shown. Whoever ends one does not want to wait.
_REPORT_S = 5.0
_INTERRUPTED_REPORT_S = 1.0


def _flow_run_name() -> str:
    return f"train · {flow_run.parameters['trainer'].kind} x{flow_run.parameters['num_workers']}"


@notifies
@form_flow(name="train", flow_run_name=kept_name(_flow_run_name))
def train(
    trainer: TrainerChoice,
    num_workers: NumWorkers = 1,
    name: str = "",
    datasets: DatasetPaths = {},  # noqa: B006  # it is only read, and a form shows it as empty
    scaling_config: ScalingSection = ScalingSection(),
    run_config: RunSection = RunSection(),
    checkpoint_config: CheckpointSection = CheckpointSection(),
    failure_config: FailureSection = FailureSection(),
    dataset_config: DataSection = DataSection(),
    runtime_env: EnvironmentSection = EnvironmentSection(),
) -> Result:
    """Train on a gang of Ray workers, with retries that resume, recorded in one MLflow run.

    Args:
        trainer: Which trainer, and what it needs.
        num_workers: Workers that train together, each in its own process.
        name: The training's name. If the last training with this name was interrupted, and its function, config and data are
            unchanged, that training is continued. Empty: a name is made up.
        datasets: What get_dataset_shard gives, by name: paths or URIs of CSV, Parquet or JSON Lines files. 'train' is split
            across the workers, the others are whole on each worker.
        scaling_config: What each worker gets, and where workers are placed.
        run_config: Where the training is kept, and when it ends.
        checkpoint_config: Which checkpoints are kept.
        failure_config: What is retried.
        dataset_config: Which datasets are split across the workers.
        runtime_env: What workers need besides what their machines have: packages, variables and code.
    """
    spec = TrainSpec.of_parameters(
        trainer,
        num_workers,
        name,
        datasets,
        scaling_config,
        run_config,
        checkpoint_config,
        failure_config,
        dataset_config,
        runtime_env,
    )
    return shown_as_stopped(outliving_prefect(lambda: train_here(spec.inspected())))


def train_here(inspected: InspectedTrainer) -> Result:
    """Train within the flow run that this is called in."""
    with store_of(inspected.trainer.run_config).in_use():
        return _train(inspected)


def _train(inspected: InspectedTrainer) -> Result:
    trainer = inspected.trainer
    flow_run_id, title = str(flow_run.id), title_of(trainer)
    name = describe_flow_run(title, tags_of(trainer))
    screens = [screen_for(title, trainer.run_config.verbose)] if shows_trainings.get() else []
    training = open_training(
        inspected,
        flow_run_id=flow_run_id,
        tags=tags.of_flow_run(name, flow_run_url(flow_run_id)),
        display=Display(screens),
    )
    try:
        mark_interrupted(training.run, flow_run_id, training.display.say)
        if training.run.finished_in == flow_run_id:  # what failed in that flow run came after the training
            training.display.say("it was finished before: there is nothing left to train")
            result = training.finished_before()
            result.flow_run_id, result.flow_run_url = flow_run_id, flow_run_url(flow_run_id)
            training.close(None)
            return result
        attempts = train_task.with_options(
            name="train",
            task_run_name=title,
            retries=most_retries(trainer.run_config.failure_config),
        )
        with suspension_raised():
            result = result_in(attempts(training))
        result.flow_run_id, result.flow_run_url = flow_run_id, flow_run_url(flow_run_id)
    except BaseException as error:
        if isinstance(error, TrainingFailedError) and error.result is not None:
            error.result.flow_run_id, error.result.flow_run_url = flow_run_id, flow_run_url(flow_run_id)
        _close(training, error)
        raise
    _close(training, None)
    return result


def _close(training: Training, error: BaseException | None) -> None:
    shown = show_report(training.summary(error))
    seconds = _REPORT_S if error is None or isinstance(error, Exception) else _INTERRUPTED_REPORT_S
    deadline = time.monotonic() + seconds  # it is sent while the training is closed, which also waits for the server
    try:
        training.close(error)
    finally:
        shown.flush(deadline - time.monotonic())
