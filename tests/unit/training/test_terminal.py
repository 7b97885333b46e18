"""What a person sees of a training in the terminal, or in a notebook."""

from __future__ import annotations

import re

import numpy as np
import pytest

from trainlib._training.display import Display, Screen
from trainlib._training.notebook import Notebook
from trainlib._training.terminal import Terminal, compact, in_full
from trainlib.tune._table import SweepTerminal

CONFIG = {"lr": 0.1, "password": "correct horse"}
RESULT = {"loss": 0.5, "val": {"acc": 0.25}, "training_iteration": 1, "pid": 77, "config": CONFIG}


def shown(capfd, verbose: int, iterations: int, screen: type[Screen] = Terminal) -> tuple[str, str]:
    terminal = screen("digits", verbose)
    terminal.status("training")
    terminal.output(1, "hello", is_error=False)
    terminal.output(1, "a warning", is_error=True)
    for iteration in range(1, iterations + 1):
        terminal.progress(iteration, iterations, {**RESULT, "training_iteration": iteration})
    terminal.close(succeeded=True)
    return capfd.readouterr()


@pytest.mark.parametrize("verbose", [0, 1, 2, 3])
def test_what_workers_print_is_always_shown(capfd, verbose):
    out, err = shown(capfd, verbose, 3)
    assert out == "[rank 1] hello\n"
    assert "[rank 1] a warning\n" in err
    assert (err == "[rank 1] a warning\n") == (verbose == 0)


@pytest.mark.parametrize("verbose", [0, 1])
@pytest.mark.parametrize("screen", [Terminal, Notebook, SweepTerminal])
def test_a_callback_that_raises_is_named_at_any_verbosity(capfd, screen, verbose):
    display = Display([screen("digits", verbose)])
    display.say("waiting for room")
    display.warn("the callback Broken raised KeyError")
    _, err = capfd.readouterr()
    assert err == "waiting for room\n" * verbose + "the callback Broken raised KeyError\n"


@pytest.mark.parametrize("verbose", [1, 2, 3])
def test_without_a_terminal_each_iteration_of_a_short_run_has_one_line(capfd, verbose):
    _, err = shown(capfd, verbose, 10)
    lines = [line for line in err.splitlines() if re.match("digits  iteration", line)]
    assert len(lines) == 10
    assert re.fullmatch(r"digits  iteration 3/10  loss=0\.5 val/acc=0\.25  \d+ s", lines[2])
    assert ("'pid': 77" in err) == (verbose == 3), "only 3 shows what is filled in"
    assert ("'lr': 0.1" in err) == (verbose == 3)
    assert "correct horse" not in err


@pytest.mark.parametrize("screen", [Terminal, Notebook])
@pytest.mark.parametrize("verbose", [0, 1, 2, 3])
def test_how_much_is_shown_of_each_result_in_a_notebook_too(capfd, screen, verbose):
    out, err = shown(capfd, verbose, 10, screen)
    assert "[rank 1] hello\n" in out
    lines = re.findall(r"^digits  iteration 3/10  loss=0\.5 val/acc=0\.25  \d+ s$", out + err, re.MULTILINE)
    assert bool(lines) == (verbose > (1 if screen is Notebook else 0)), "a notebook's line moves"
    assert (out + err).count("'pid': 77") == (10 if verbose == 3 else 0)
    assert "correct horse" not in out + err


def test_of_a_long_run_the_first_and_the_last_iterations_are_shown(capfd):
    _, err = shown(capfd, 1, 1000)
    lines = re.findall(r"iteration (\d+)/1000", err)
    assert lines[:50] == [str(number) for number in range(1, 51)]
    assert lines[-1] == "1000"
    assert len(lines) < 70
    _, err = shown(capfd, 2, 1000)
    assert len(re.findall(r"iteration (\d+)/1000", err)) == 1000


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("not ready")


def test_an_object_whose_repr_raises_is_shown_by_its_class():
    assert compact({"odd": Unspeakable()}) == "odd=<Unspeakable>"
    assert '"odd": "<Unspeakable>"' in in_full({"odd": Unspeakable(), "loss": 0.5}).plain


def test_values_of_any_kind_fit_on_one_line():
    metrics = {
        "matrix": np.zeros((20, 20)),
        "text": "x" * 100,
        "lines": "a\nb",
        "best": None,
        "nan": float("nan"),
        "few": [1, 2],
        "seventh": 1,
    }
    assert compact(metrics) == f"matrix=[400 values] text={'x' * 29}… lines=a b best=None nan=nan few=[1, 2]"
