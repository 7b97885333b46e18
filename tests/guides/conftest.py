"""Runs the examples of the guides like scripts, but in this process, so that they share one Ray and one Prefect."""

import runpy
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trainlib import DataParallelTrainer, Result

EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class Ran:
    """The output and the variables of an example."""

    printed: str
    """Its standard output, with the lines that its workers printed."""
    names: dict[str, Any]
    """Its global variables."""
    started: int
    """When it was started, in seconds as ``time.time()`` has them."""
    results: list[Result]
    """What each ``fit()`` gave, also where the guide does not keep it."""

    @property
    def lines(self) -> list[str]:
        return self.printed.splitlines()

    @property
    def result(self) -> Result:
        """What the last ``fit()`` gave."""
        return self.results[-1]


@pytest.fixture
def run_example(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs an example by its name. Keywords replace a ``"..."`` of the guide."""

    results: list[Result] = []
    fit = DataParallelTrainer.fit

    def remembered(trainer: DataParallelTrainer) -> Result:
        results.append(fit(trainer))
        return results[-1]

    monkeypatch.setattr(DataParallelTrainer, "fit", remembered)

    def run(name: str, **left_open: str) -> Ran:
        capsys.readouterr()
        results.clear()
        started = int(time.time())
        # As __main__, like a script: its functions are then sent to the workers by value.
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"), init_globals=left_open, run_name="__main__")
        return Ran(capsys.readouterr().out, names, started, list(results))

    return run


_have_run: dict[str, Ran] = {}


@pytest.fixture
def example(run_example: Callable[..., Ran]) -> Callable[[str], Ran]:
    """Gives what an example left behind. All tests that look at one look at the same run of it, and change nothing."""

    def once(name: str) -> Ran:
        if name not in _have_run:
            _have_run[name] = run_example(name)
        return _have_run[name]

    return once
