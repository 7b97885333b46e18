"""Twenty faults of all kinds, in all frameworks and a sweep: nothing is lost, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.chaos.account import table
from tests.chaos.faults import FAULTS
from tests.chaos.plans import draw_all
from tests.chaos.rounds import run_all
from tests.chaos.scene import scene
from tests.chaos.victims import VICTIMS

SEED = 29171
"""Its faults are of all kinds."""
NUMBER = 20


def test_the_seed_draws_every_fault_and_every_victim():
    plans = draw_all(SEED, NUMBER)
    assert {plan.victim for plan in plans} == set(VICTIMS)
    assert {strike.fault.name for plan in plans for strike in plan.strikes} == {fault.name for fault in FAULTS}


@pytest.mark.timeout(1800)
def test_nothing_is_lost_by_random_faults(tmp_path_factory):
    with scene(tmp_path_factory.mktemp("chaos")) as running:
        accounts = list(run_all(draw_all(SEED, NUMBER), running, print))
        running.prefect.wait()
        assert running.prefect.unended() == 0, "flow runs look as if they still ran"
    print(table(accounts))
    assert [problem for one in accounts for problem in one.problems] == []
