"""The flow that continues a training or a sweep that was interrupted."""

from __future__ import annotations

from typing import Annotated

from prefect.logging import get_run_logger
from prefect.runtime import flow_run
from pydantic import Field

from trainlib._bounds import MOST_WORKERS
from trainlib._continuing.config_changes import hidden_keys, lost_secrets, with_changes
from trainlib._continuing.interrupted import interrupted_runs, run_begun_in
from trainlib._continuing.recorded import (
    RecordedTrainer,
    is_checkpoint_id,
    load_recorded,
    starting_point,
    state_of,
)
from trainlib._continuing.trainers import resumed
from trainlib._form_secrets import SecretsByReference
from trainlib._registry.listing import RunState
from trainlib._trainable import require_trainable
from trainlib.errors import InvalidArgumentError, TrainlibError
from trainlib.flows._describing import kept_name
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._fields import about_field
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.flows._secret_blocks import with_secret_blocks
from trainlib.flows.sweep import sweep_here
from trainlib.flows.train import train_here
from trainlib.result import Result
from trainlib.tasks._stopped import shown_as_stopped
from trainlib.trainer import DataParallelTrainer
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._tuner import Tuner

__all__ = ["resume"]


def _flow_run_name() -> str:
    return f"resume · {flow_run.parameters.get('run') or 'the newest that was interrupted'}"


@notifies
@form_flow(name="resume", flow_run_name=kept_name(_flow_run_name))
def resume(
    run: str = "",
    num_workers: Annotated[int, Field(ge=0, le=MOST_WORKERS, strict=True)] = 0,
    secrets: Annotated[dict[str, str], SecretsByReference()] = {},  # noqa: B006  # it is only read, and a form shows it as empty
    even_if_finished: bool = False,
) -> Result | ResultGrid | None:
    """Continue a training or a sweep that was interrupted, from its newest checkpoints and in the same MLflow run.

    With nothing filled in, that is the newest one that was interrupted. If there is none, nothing is done. Function, config and data are
    those that were recorded. The function has to be marked with `@trainlib.trainable`, or its module allowed where the flow runs.

    Args:
        run: The id of an MLflow run, the beginning of it, or its name; or the id of the newest checkpoint of a run. Empty: the newest
            training or sweep that was interrupted.
        num_workers: How many processes train together now. 0: as many as before. A sweep keeps its own.
        secrets: What was not saved, being secret, by its key. Instead of the secret itself, write {{ prefect.blocks.secret.NAME }}.
        even_if_finished: Whether to call the function once more if the run has finished.
    """
    return shown_as_stopped(outliving_prefect(lambda: _resume(run, num_workers, secrets, even_if_finished)))


def _resume(run: str, num_workers: int, secrets: dict[str, str], even_if_finished: bool) -> Result | ResultGrid | None:
    if run:
        with about_field("run"):
            run_id = _run_of(run, even_if_finished)
        continued = _trainer_of(run_id, num_workers, secrets)
    elif (begun := run_begun_in(str(flow_run.id))) is not None:  # this flow run was suspended, retried, or has crashed
        continued = _trainer_of(begun, num_workers, secrets)
    elif (found := _newest_interrupted(num_workers, secrets)) is not None:
        continued = found
    else:
        get_run_logger().info("There is nothing to resume: no training or sweep was interrupted.")
        return None
    if isinstance(continued, Tuner):
        return sweep_here(continued)
    return train_here(continued.inspect())


def _run_of(run: str, even_if_finished: bool) -> str:
    """The id of the run that a text in the form means, if it can be continued.

    Raises:
        InvalidArgumentError: it has finished, or is the id of a checkpoint that is not the newest one of its run.
    """
    if is_checkpoint_id(run):
        checkpoint = starting_point(run)
        newest = starting_point(checkpoint.run_id).checkpoint
        if newest.model_id != run:
            raise InvalidArgumentError(
                f"{run} is not the newest checkpoint of {checkpoint.run_name!r} (MLflow run {checkpoint.run_id}), which is "
                f"{newest.model_id}. A run goes on from its newest one: to start from another, use the deployment fork"
            )
        run = checkpoint.run_id
    run_id, name, state = state_of(run)
    if state is RunState.FINISHED and not even_if_finished:
        raise InvalidArgumentError(
            f"{name!r} (MLflow run {run_id}) has finished. To go on with other settings, use the deployment fork; to call its "
            "function once more in the same run, set even_if_finished"
        )
    return run_id


def _newest_interrupted(num_workers: int, secrets: dict[str, str]) -> DataParallelTrainer | Tuner | None:
    """The newest one that was interrupted, and can be continued. Others are named in the log, with the reason."""
    logger = get_run_logger()
    for run_id in interrupted_runs():
        try:
            found = _trainer_of(run_id, num_workers, secrets)
        except (TrainlibError, ValueError) as error:
            logger.warning("MLflow run %s was interrupted, but cannot be resumed here: %s", run_id, error)
            continue
        logger.info("Resuming MLflow run %s, which was interrupted.", run_id)
        return found
    return None


def _trainer_of(run_id: str, num_workers: int, secrets: dict[str, str]) -> DataParallelTrainer | Tuner:
    with about_field("run"):
        recorded = load_recorded(run_id)
    with about_field("secrets"):
        config = _with_secrets(recorded, secrets)
    with about_field("run"):
        continued = resumed(recorded, config)
        for trainer in continued.trainers if isinstance(continued, Tuner) else [continued]:
            for function in trainer.settings.users_functions:
                require_trainable(function)
    if isinstance(continued, Tuner) or not num_workers:
        return continued
    scaling = continued.scaling_config.model_copy(update={"num_workers": num_workers})
    return resumed(recorded, config, scaling_config=scaling)  # type: ignore[return-value]


def _with_secrets(recorded: RecordedTrainer, secrets: dict[str, str]) -> dict[str, object] | None:
    """The config with its secrets put back. None if none are given.

    Raises:
        InvalidArgumentError: one is missing, or is none.
    """
    hidden = hidden_keys(recorded.config)
    if unknown := [key for key in secrets if key not in hidden]:
        raise InvalidArgumentError(
            f"{', '.join(unknown)} is not missing: what was not saved of MLflow run {recorded.run_id} is: "
            f"{', '.join(hidden) or 'nothing'}"
        )
    lost = lost_secrets(recorded.config, secrets)
    if lost.keys or lost.in_lists:
        raise InvalidArgumentError(
            f"{', '.join((*lost.keys, *lost.in_lists))} of MLflow run {recorded.run_id} was not saved, being secret. Put it into "
            "secrets, by its key" + (", or, where it is in a list, restore the run in Python" if lost.in_lists else "")
        )
    return with_changes(recorded.config, with_secret_blocks(secrets, "secrets")) if secrets else None
