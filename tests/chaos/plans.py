"""What is trained and what happens to it, drawn from a seed. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.chaos.faults import DISK, FAULTS, STORE, Fault
from tests.chaos.victims import VICTIMS

FAULTS_EACH = 4
"""How many faults a training meets, unless fewer are asked for."""
SEGMENT = 12
"""How many steps of a training there are for each fault."""
LEAD = 4
"""How many steps a training goes on while a fault happens. It waits at a gate then, until the fault is over."""


@dataclass(frozen=True)
class Strike:
    """A fault, and the step at which it happens."""

    fault: Fault
    step: int


@dataclass(frozen=True)
class Plan:
    """One training, and what happens to it."""

    seed: int
    victim: str
    storage: str
    strikes: tuple[Strike, ...]

    @property
    def name(self) -> str:
        """The name of the training."""
        return f"chaos-{self.seed}"

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return SEGMENT * len(self.strikes) + LEAD

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.victim} on a {self.storage}"


def draw(seed: int, faults: int = FAULTS_EACH) -> Plan:
    """The plan of a seed. Seeds that follow each other go through all victims, and through both kinds of storage.

    Example:
        >>> draw(3) == draw(3), draw(3).victim, draw(4).victim
        (True, 'horovod', 'sweep')
    """
    rng = random.Random(seed)
    storage = (DISK, STORE)[seed % 2]
    possible = [fault for fault in FAULTS if fault.storage in (None, storage)]
    # They come at least 5 steps after each other, so that a fault is over before the next one.
    steps = [SEGMENT * number + rng.randint(2, SEGMENT - LEAD) for number in range(faults)]
    strikes = tuple(map(Strike, rng.sample(possible, faults), steps))
    return Plan(seed, VICTIMS[seed % len(VICTIMS)], storage, strikes)


def draw_all(seed: int, faults: int) -> list[Plan]:
    """Plans of seeds from this one on, with so many faults in all."""
    full, rest = divmod(faults, FAULTS_EACH)
    sizes = [FAULTS_EACH] * full + [rest] * bool(rest)
    return [draw(seed + number, size) for number, size in enumerate(sizes)]
