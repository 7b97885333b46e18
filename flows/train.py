"""The flow that trains. ``Trainer.fit()`` runs it, and so does a deployment."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run

from trainlib._registry import tags
from trainlib._training.display import Display
from trainlib._training.opening import open_training
from trainlib._training.retry_policy import most_retries
from trainlib._training.terminal import Terminal
from trainlib.callbacks._mlflow import store_of
from trainlib.flows._embedded import flow_run_url
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._interrupted import mark_interrupted
from trainlib.flows._local import shows_trainings
from trainlib.flows.spec import TrainSpec
from trainlib.result import Result
from trainlib.tasks.train import train as train_task
from trainlib.trainer import DataParallelTrainer, InspectedTrainer

__all__ = ["train"]


def run_name(trainer: DataParallelTrainer) -> str:
    """How runs of a trainer are called, e.g. ``train · torch x2``."""
    return f"train · {trainer.backend_config.framework} x{trainer.scaling_config.num_workers}"


@flow(
    name="train",
    flow_run_name="train · {spec.framework} x{spec.scaling_config.num_workers}",
    persist_result=False,
)
def train(spec: TrainSpec) -> Result:
    """Train on a gang of Ray workers, with retries that resume, recorded in one MLflow run.

    Args:
        spec: What to train, on how many workers, and how it is kept.
    """
    return outliving_prefect(lambda: train_here(spec.inspected()))


def train_here(inspected: InspectedTrainer) -> Result:
    """Train within the flow run that this is called in."""
    with store_of(inspected.trainer.run_config).in_use():
        return _train(inspected)


def _train(inspected: InspectedTrainer) -> Result:
    trainer = inspected.trainer
    flow_run_id = str(flow_run.id)
    screens = [Terminal(run_name(trainer), trainer.run_config.verbose)] if shows_trainings.get() else []
    training = open_training(
        inspected,
        flow_run_id=flow_run_id,
        tags=tags.of_flow_run(flow_run.name, flow_run_url(flow_run_id)),
        display=Display(screens),
    )
    try:
        mark_interrupted(training.run, flow_run_id, training.display.say)
        result = train_task.with_options(
            name="train",
            task_run_name=run_name(trainer),
            retries=most_retries(trainer.run_config.failure_config),
        )(training)
        result.flow_run_id = flow_run_id
    except BaseException as error:
        training.close(error)
        raise
    training.close(None)
    return result
