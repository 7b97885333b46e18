"""What a person sees of a sweep while it runs."""

from __future__ import annotations

import io
import re

from rich.console import Console

from tests.integration.led_by_hand import CPUS, begin, start
from trainlib.tune._table import SweepTerminal, rows_of


def test_the_table_shows_where_each_trial_is_and_which_is_best(monkeypatch):
    sweep = begin("table")
    start(sweep, 5.0)
    start(sweep, 2.0, 0.5)
    assert rows_of(sweep, 16) == [
        {"trial": "0", "state": "running", "iteration": "1", "x": "0", "loss": "5"},
        {"trial": "1 ★", "state": "running", "iteration": "2", "x": "1", "loss": "0.5"},
    ]
    screen = io.StringIO()
    terminal = SweepTerminal("table", verbose=1)
    monkeypatch.setattr(terminal, "_console", Console(file=screen, force_terminal=True, width=100, highlight=False))
    terminal.update(sweep)
    assert re.search(r"0/3 trials, 2 running, \d+ s, best loss 0\.5 \(trial 1\)", screen.getvalue())
    for trial in list(sweep.trials):
        sweep.ended(trial, None, None)
    assert sweep.next_trial(CPUS, 0) is not None
    sweep.close(None)
    terminal.close(sweep)
    assert "2/3 trials, 1 running" in screen.getvalue()
    assert "best: trial 1 · x=1 · loss 0.5 · http" in screen.getvalue()


def test_of_many_trials_those_that_run_the_best_and_the_newest_are_shown():
    sweep = begin("many-rows", num_samples=10)
    for loss in (9.0, 1.0, *[5.0] * 20):
        sweep.ended(start(sweep, loss), None, None)
    running = start(sweep, 7.0)
    shown = [row["trial"] for row in rows_of(sweep, 5)]
    assert shown == ["1 ★", "19", "20", "21", str(running.number)]
    sweep.close(KeyboardInterrupt())
