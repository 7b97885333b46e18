"""The flow that moves an alias of a registered model back to the version before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from trainlib._registry.aliases import AliasMove
from trainlib._registry.models import has_models, roll_back_alias
from trainlib._registry.store import current_store
from trainlib._registry.urls import model_url
from trainlib.errors import NoEarlierVersionError
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.flows.pipeline_spec import Alias, ModelName
from trainlib.tasks._background import show

__all__ = ["RollbackResult", "rollback"]


@dataclass(frozen=True)
class RollbackResult:
    """What has become of the alias."""

    move: AliasMove | None
    """From which version to which. None if there was nothing to go back to."""
    summary: str
    """The same in words, and why, if it was not moved."""


@notifies
@form_flow(name="rollback", flow_run_name="rollback · {model_name}")
def rollback(model_name: ModelName, alias: Alias = "best") -> RollbackResult:
    """Point an alias of a registered model back to the version that had it before. Once more goes back further.

    If there is nothing to go back to, since nothing is registered yet, or since no other version has had the alias, the run ends
    as Completed, says so, and leaves everything as it is. A model or an alias that does not exist is an error.

    Args:
        model_name: The registered model.
        alias: The alias to move back.
    """
    ended = outliving_prefect(lambda: _roll_back(model_name, alias))
    return ended if isinstance(ended, State) else Completed(message=ended.summary, data=ended)  # type: ignore[return-value]


def _roll_back(model_name: str, alias: str) -> RollbackResult:
    store = current_store()
    if not has_models():
        result = RollbackResult(None, "There is nothing to roll back: no model is registered yet.")
    else:
        try:
            move = roll_back_alias(model_name, alias)  # not as a task: nothing to go back to is no failure
        except NoEarlierVersionError as error:
            result = RollbackResult(None, f"There is nothing to roll back: {error}")
        else:
            what = f"The alias '{alias}' of {model_name} points to version {move.version} again"
            result = RollbackResult(move, f"{what}; it pointed to version {move.previous}.")
    lines = [result.summary]
    if result.move is not None:
        for name, version in (("before", result.move.previous), ("now", result.move.version)):
            lines.append(f"- {name}: [version {version}]({model_url(store.uri, model_name, str(version))})")
    about = f"The alias {alias} of {model_name}"
    show(partial(create_markdown_artifact, "\n".join(lines), key="rollback", description=about))
    return result
