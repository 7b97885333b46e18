"""The task that makes a checkpoint a version of a model. It moves no alias: :mod:`trainlib.tasks.promote` does."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from trainlib._registry.models import HeldOutScores, Selection
from trainlib._registry.models import register_version as register

__all__ = ["register_version"]


@task(name="register_version", task_run_name="register · {name}", cache_policy=NO_CACHE)
def register_version(selection: Selection, name: str, held_out: HeldOutScores | None = None) -> str:
    """Make a version of a registered model, unless the checkpoint is one already. Gives its number.

    Args:
        selection: The checkpoint, as select_checkpoint gives it.
        name: The registered model's name; it is created if it is not there.
        held_out: What the checkpoint scores on held-out rows.
    """
    return register(selection, name, held_out)
