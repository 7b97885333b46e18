"""``python -m tests.chaos --rounds 200 --seed 1``: so many faults, and the account of them."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.chaos.account import Account, table
from tests.chaos.plans import FAULTS_EACH, draw_all
from tests.chaos.rounds import run_all
from tests.chaos.scene import scene


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=FAULTS_EACH, help="how many faults")
    parser.add_argument("--seed", type=int, default=None, help="what they are drawn from; the clock, if it is left out")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time())
    say = partial(print, flush=True)
    say(f"{options.rounds} faults from seed {seed}")
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    accounts: list[Account] = []
    try:
        with scene(folder) as running:
            for one in run_all(draw_all(seed, options.rounds), running, say):
                accounts.append(one)
            running.prefect.wait()
            unended = running.prefect.unended()
    finally:  # also of a night that somebody ends
        say(table(accounts))
    say(f"flow runs that Prefect shows as not ended: {unended}")
    bad = [one for one in accounts if not one.is_clean]
    for one in bad:
        again = f"make chaos ROUNDS={len(one.plan.strikes)} SEED={one.plan.seed}"
        say(f"{one.plan}: {'; '.join(one.problems)}. To see it again: {again}")
    if bad or unended:
        say(f"What all processes said is in {folder}")
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
