"""What XGBoost and LightGBM differ in before anything starts."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainlib._boosting.arguments import given_params
from trainlib._boosting.native import native_library

__all__ = ["Library"]

Params = dict[str, Any]


@dataclass(frozen=True)
class Library:
    """A library of boosted trees, as a trainer's arguments are checked for it. It is not imported for that."""

    package: str
    file: str
    """What its compiled part is called, without the ending."""
    matrix: str
    """What a dataset becomes, by its full name."""
    columns: tuple[str, ...]
    """Arguments of a matrix that name a column."""
    arguments: tuple[str, ...]
    """Its other arguments that may be given."""
    not_in_names: str
    """Characters that the name of a feature may not have."""
    taken: Mapping[str, str]
    """Arguments of a matrix that the trainer passes itself, and what to pass to the trainer instead."""
    instead: Mapping[str, str]
    """Arguments of the library's ``train()`` that the trainer does not take, and what to use instead."""
    require_possible: Callable[[Params, int | None], None]
    """Raises a ValueError if parameters cannot be right, whatever the data are. It is also given the rounds for early stopping."""
    require_known: Callable[[Params, ctypes.CDLL], None]
    """Raises an InvalidArgumentError if the library does not know a parameter, or not its value."""
    objective_in: Callable[[Params], Any]
    """The objective that parameters name, if they do."""
    classes_in: Callable[[Params], Any]
    """The number of classes that parameters name, if they do."""
    need_of: Callable[[Params], str | None]
    """What the objective needs the labels to be, one of :class:`~trainlib._boosting.labels.Needs`. None if any will do."""
    ranks: Callable[[Params], bool]
    """Whether an objective ranks the rows of a query."""
    patience_in: Callable[[Params], Any] = lambda params: None
    """The number of rounds for early stopping, where parameters may have it."""
    alone_with: Callable[[Params], str | None] = lambda params: None
    """What only one worker can train with, e.g. ``booster='gblinear'``, and what to use instead. None if several can."""
    why_not_resumed: Callable[[Params], str | None] = lambda params: None
    """Why a training cannot go on from a given checkpoint. None if it can."""
    require_consistent: Callable[[Params, Mapping[str, Mapping[str, Any]]], None] = lambda params, given: None
    """Raises an InvalidArgumentError if parameters and the arguments of matrices, by dataset, contradict each other."""

    def require_known_here(self, params: Params) -> None:
        """Check them with what is installed here, without importing it. Nothing is checked if its compiled part is not found."""
        if (native := native_library(self.package, self.file)) is not None:
            self.require_known(given_params(params), native)
