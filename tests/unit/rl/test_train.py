"""How a training of RLlib's ends."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest

from trainlib.rl._train import until_it_ends


class SimulatorError(Exception):
    """What went wrong first."""


def iterate() -> NoReturn:
    raise SimulatorError("out of fuel")


def test_an_algorithm_is_stopped_before_its_error_is_raised():
    handled = []
    with pytest.raises(SimulatorError):
        until_it_ends(iterate, lambda: handled.append(sys.exception()))
    assert handled == [None], "RLlib would log an error that is being handled as one of its own"


def test_an_algorithm_that_cannot_even_be_stopped_fails_with_what_went_wrong_first():
    def stop() -> None:
        raise RuntimeError("an actor is gone")

    with pytest.raises(SimulatorError, match="out of fuel") as raised:
        until_it_ends(iterate, stop)
    assert str(raised.value.__context__) == "an actor is gone", "that is shown, too"
