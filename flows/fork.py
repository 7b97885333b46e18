"""The flow that starts a new training from a checkpoint of another one, with other settings."""

from __future__ import annotations

from typing import Annotated, Any

from prefect.runtime import flow_run
from pydantic import Field

from trainlib._bounds import MOST_WORKERS
from trainlib._continuing.config_changes import lost_secrets, with_changes
from trainlib._continuing.recorded import load_recorded, starting_point
from trainlib._continuing.trainers import forked, require_training
from trainlib._form_secrets import WithoutPlainSecrets
from trainlib._trainable import require_trainable
from trainlib.errors import InvalidArgumentError
from trainlib.flows._demo_model import demo_model
from trainlib.flows._describing import kept_name
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._fields import about_field
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.flows._secret_blocks import with_secret_blocks
from trainlib.flows.train import train_here
from trainlib.result import Result
from trainlib.tasks._stopped import shown_as_stopped
from trainlib.trainer import DataParallelTrainer

__all__ = ["fork"]


def _flow_run_name() -> str:
    return f"fork · {flow_run.parameters.get('source') or 'the demo'}"


@notifies
@form_flow(name="fork", flow_run_name=kept_name(_flow_run_name))
def fork(
    source: str = "",
    changes: Annotated[dict[str, Any], WithoutPlainSecrets()] = {},  # noqa: B006  # it is only read, and a form shows it as empty
    add_settings: bool = False,
    num_workers: Annotated[int, Field(ge=0, le=MOST_WORKERS, strict=True)] = 0,
    name: Annotated[str, Field(max_length=250)] = "",
) -> Result:
    """Start a new training from a checkpoint of another one, with other settings. The other one stays as it is.

    Function and data are those that were recorded. The function has to be marked with `@trainlib.trainable`, or its module allowed where
    the flow runs. The new MLflow run has the tag `trainlib.forked_from`.

    Args:
        source: The id of a checkpoint; or the id of an MLflow run, the beginning of it, or its name, for its newest checkpoint. Empty: the
            best model of the demo, which is trained first if there is none.
        changes: The settings of train_loop_config that are different now, by their keys. Dots reach into dicts: {"lr": 0.01,
            "model.depth": 4}. What was not saved, being secret, is given here too: write {{ prefect.blocks.secret.NAME }}.
        add_settings: Whether changes may have settings that the config does not have.
        num_workers: How many processes train together now. 0: as many as before.
        name: The name of the new run. Empty: the old name, marked as a fork.
    """
    return shown_as_stopped(outliving_prefect(lambda: _fork(source, changes, add_settings, num_workers, name)))


def _fork(source: str, changes: dict[str, Any], add: bool, num_workers: int, name: str) -> Result:
    trainer = _trainer_of(source or demo_model().model_id, with_secret_blocks(changes, "changes"), add, name)
    if num_workers:
        scaling = trainer.scaling_config.model_copy(update={"num_workers": num_workers})
        trainer = trainer.copy_with(scaling_config=scaling)
    return train_here(trainer.inspect())


def _trainer_of(source: str, changes: dict[str, Any], add: bool, name: str) -> DataParallelTrainer:
    with about_field("source"):
        start = starting_point(source)
        settings = require_training(load_recorded(start.run_id), source)
        for function in settings.users_functions:
            require_trainable(function)
    with about_field("changes"):
        config = with_changes(settings.train_loop_config, changes, add=add)
        lost = lost_secrets(config)
        if lost.keys or lost.in_lists:
            raise InvalidArgumentError(
                f"{', '.join((*lost.keys, *lost.in_lists))} was not saved, being secret. Give it here, by its key"
            )
    return forked(start, settings, config, name or None)
