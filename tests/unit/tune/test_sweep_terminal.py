"""What a person sees of a sweep's trials in the terminal."""

from __future__ import annotations

import pytest

from trainlib.tune._table import SweepTerminal

RESULT = {"loss": 0.5, "training_iteration": 2, "pid": 77}


@pytest.mark.parametrize("verbose", [0, 1, 2, 3])
def test_prints_are_always_shown_and_results_when_they_are_asked_for(capfd, verbose):
    terminal = SweepTerminal("sweep", verbose)
    terminal.output(4, 1, "hello", is_error=False)
    terminal.result(4, RESULT)
    out, err = capfd.readouterr()
    assert out == "[trial 4 rank 1] hello\n"
    assert ("trial 4  iteration 2  loss=0.5" in err) == (verbose >= 2)
    assert ("'pid': 77" in err) == (verbose == 3)


def test_in_a_deployment_nothing_is_printed_because_prefect_has_it(capfd):
    terminal = SweepTerminal("sweep", 3, is_watched=False)
    terminal.output(4, 1, "hello", is_error=False)
    terminal.result(4, RESULT)
    terminal.say("a remark")
    assert capfd.readouterr() == ("", "")
