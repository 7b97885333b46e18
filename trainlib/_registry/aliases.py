"""Aliases of model versions: moving one, and moving it back.

Where an alias has pointed is kept as a tag of its model, the newest version last. Only one process at a time moves an
alias (:func:`move_alias`), so the tag and the alias tell the same story. People may move aliases in MLflow's UI as
well, which does not write the tag: :func:`trail` makes sense of both.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlib._registry import tags
from trainlib._registry.turns import take_turn
from trainlib._secrets import masked_uri
from trainlib.errors import ModelNotFoundError, NoEarlierVersionError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion as RegisteredVersion
    from mlflow.entities.model_registry import RegisteredModel

__all__ = [
    "AliasMove",
    "alias_holder",
    "earlier_version",
    "find_version",
    "move_alias",
    "point_alias",
    "roll_back",
    "trail",
]

_LONGEST_TRAIL = 100


@dataclass(frozen=True)
class AliasMove:
    """An alias that was moved."""

    model: str
    alias: str
    version: str
    """Where it points now."""
    previous: str | None
    """Where it pointed before. None if it is new."""


def point_alias(client: MlflowClient, model: str, alias: str, version: str | None = None) -> AliasMove:
    """Point an alias to a version of a model, whatever had it before.

    Args:
        client: A client of the store in use.
        model: The name of the model.
        alias: The alias.
        version: The version. Default: the newest.

    Raises:
        ModelNotFoundError: there is no such model or version.
    """
    known = _versions(client, model)
    if version is None:
        version = known[-1]
    elif version not in known:
        raise ModelNotFoundError(f"the model {model!r} has no version {version}; it has {', '.join(known)}")
    while True:
        holder = alias_holder(client, model, alias)
        if move_alias(client, model, alias, version, holder):
            return AliasMove(model, alias, version, holder)


def find_version(
    client: MlflowClient, model: str, *, version: str | None = None, alias: str | None = None
) -> RegisteredVersion:
    """A version of a model, by its number or by its alias.

    Raises:
        ModelNotFoundError: there is no such model, version or alias.
    """
    known = _versions(client, model)
    if alias is not None:
        holder = holding_version(client, model, alias)
        if holder is None:
            aliases = ", ".join(sorted(_model(client, model).aliases))
            raise ModelNotFoundError(f"the model {model!r} has no alias {alias!r}; its aliases: {aliases or 'none'}")
        return holder
    if version not in known:
        raise ModelNotFoundError(f"the model {model!r} has no version {version}; it has {', '.join(known)}")
    return client.get_model_version(model, version)


def roll_back(client: MlflowClient, model: str, alias: str) -> AliasMove:
    """Point an alias to the version that had it before.

    Raises:
        ModelNotFoundError: there is no such model or alias.
        NoEarlierVersionError: no version is known that had it before.
    """
    while True:
        known = _versions(client, model)
        holder = alias_holder(client, model, alias)
        if holder is None:
            aliases = ", ".join(sorted(_model(client, model).aliases))
            raise ModelNotFoundError(f"the model {model!r} has no alias {alias!r}; its aliases: {aliases or 'none'}")
        earlier = earlier_version(_history(client, model, alias), holder, known)
        if earlier is None:
            raise NoEarlierVersionError(
                f"the alias {alias!r} of the model {model!r} points to version {holder}, and no version that had it before is "
                f"known. Choose one of {', '.join(known)}: trainlib promote {model} --version N --alias {alias}"
            )
        if move_alias(client, model, alias, earlier, holder, is_back=True):
            return AliasMove(model, alias, earlier, holder)


def move_alias(
    client: MlflowClient, model: str, alias: str, version: str, holder: str | None, *, is_back: bool = False
) -> bool:
    """Point an alias to a version, if it still points to ``holder``. Gives whether it was moved.

    Other processes may move it meanwhile: one at a time looks and moves it. A move that ``is_back`` shortens the trail, so
    that the next one goes back further.
    """
    subject = f"{hashlib.sha256(model.encode()).hexdigest()[:8]}.{alias}"
    with take_turn(client, _run_of_oldest(client, model), subject) as ends:
        if alias_holder(client, model, alias) != holder or time.monotonic() >= ends:
            return False
        # First the tag: if this process is killed in between, the alias tells where the trail really ends.
        went = trail(_history(client, model, alias), holder)
        went = trail(went[:-1], version) if is_back else [*went, version]
        client.set_registered_model_tag(model, tags.alias_trail(alias), json.dumps(went[-_LONGEST_TRAIL:]))
        client.set_registered_model_alias(model, alias, version)
        return True


def trail(history: Sequence[str], holder: str | None) -> list[str]:
    """Where an alias has been, ending with the version that has it now.

    What came after that version was taken back. A version that is not in the history was given the alias by somebody
    else, after all others.

    Example:
        >>> trail(["1", "2", "3"], "3"), trail(["1", "2", "3"], "2"), trail(["1", "3"], "2"), trail([], None)
        (['1', '2', '3'], ['1', '2'], ['1', '3', '2'], [])
    """
    went = list(history)
    if holder is None:
        return went
    if holder not in went:
        return [*went, holder]
    return went[: len(went) - went[::-1].index(holder)]


def earlier_version(history: Sequence[str], holder: str, known: Sequence[str]) -> str | None:
    """The version that had an alias before ``holder``, of those that still exist. None if there is none.

    Example:
        >>> earlier_version(["1", "2", "3"], "3", ["1", "3"]), earlier_version([], "3", ["1", "3"])
        ('1', None)
    """
    before = trail(history, holder)[:-1]
    return next((version for version in reversed(before) if version in known and version != holder), None)


def alias_holder(client: MlflowClient, model: str, alias: str) -> str | None:
    """The version that an alias points to. None if there is no such alias."""
    found = holding_version(client, model, alias)
    return None if found is None else str(found.version)


def holding_version(client: MlflowClient, model: str, alias: str) -> RegisteredVersion | None:
    """The version that an alias points to, with its tags."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(model, alias)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise  # without knowing which version holds it, the alias stays
        return None


def _history(client: MlflowClient, model: str, alias: str) -> list[str]:
    return [str(version) for version in json.loads(_model(client, model).tags.get(tags.alias_trail(alias), "[]"))]


def _versions(client: MlflowClient, model: str) -> list[str]:
    """All versions of a model, the newest last."""
    _model(client, model)
    found = client.search_model_versions(f"name = {tags.quoted(model)}", order_by=["version_number ASC"])
    if not found:
        raise ModelNotFoundError(f"the model {model!r} has no versions in {masked_uri(client.tracking_uri)}")
    return [str(version.version) for version in found]


def _model(client: MlflowClient, model: str) -> RegisteredModel:
    from mlflow.exceptions import MlflowException

    try:
        return client.get_registered_model(model)
    except MlflowException as error:
        if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            raise
        names = sorted(found.name for found in client.search_registered_models())
        raise ModelNotFoundError(
            f"no registered model is called {model!r} in {masked_uri(client.tracking_uri)}; there are: "
            f"{', '.join(names) or 'none'}"
        ) from None


def _run_of_oldest(client: MlflowClient, model: str) -> str:
    """The run of a model's oldest version, which all processes that move its aliases find."""
    for version in client.search_model_versions(f"name = {tags.quoted(model)}", order_by=["version_number ASC"]):
        if version.run_id and client.get_run(version.run_id).info.lifecycle_stage == "active":
            return str(version.run_id)
    raise ModelNotFoundError(f"no version of the model {model!r} has a run in {masked_uri(client.tracking_uri)}")
