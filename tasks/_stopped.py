"""How Prefect shows a training that a limit has ended: as completed, with a name and a message that say so."""

from __future__ import annotations

from typing import TypeVar

from prefect.client.schemas.objects import State
from prefect.states import Completed

from trainlib.result import Result

__all__ = ["STATE", "result_in", "shown_as_stopped"]

STATE = "Stopped"
"""The name of the state. Its type is COMPLETED: whatever waits for the run goes on."""

R = TypeVar("R")


def shown_as_stopped(returned: R) -> R:
    """What a flow or task returns in place of the result of a training, so that Prefect shows why it ended.

    A flow's caller gets the result all the same; a task's caller calls :func:`result_in`.
    """
    if isinstance(returned, Result) and returned.stopped is not None:
        return Completed(name=STATE, message=f"{returned.stopped}.", data=returned)  # type: ignore[return-value]
    return returned


def result_in(returned: R) -> R:
    """The result in what such a task has returned: Prefect gives a task's caller the state itself."""
    if isinstance(returned, State) and returned.name == STATE:
        return returned.result(_sync=True)  # type: ignore
    return returned
