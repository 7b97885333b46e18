"""The registration task: a checkpoint becomes a model version, and the alias moves to a better one only."""

from __future__ import annotations

from functools import partial

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from trainlib._registry.models import ModelVersion, Selection, register
from trainlib.tasks._background import show

__all__ = ["register_model"]


@task(name="register_model", task_run_name="register · {name}", cache_policy=NO_CACHE)
def register_model(selection: Selection, name: str, alias: str = "best") -> ModelVersion:
    """Make a version of a registered model.

    Args:
        selection: The checkpoint, as select_checkpoint gives it.
        name: The registered model's name; it is created if it is not there.
        alias: The alias that the best version holds.
    """
    version = register(selection, name, alias)
    moved = f"`{alias}` points to it now" if version.promoted else f"`{alias}` stays with {version.previous_score:.4g}"
    text = f"**{name}** version {version.version}: {selection.metric} {selection.score:.4g}, {moved}."
    about = f"Version {version.version} of {name}"
    show(partial(create_markdown_artifact, text, key="model-version", description=about))
    return version
