"""What holds for every backend: gradients are averaged, and whatever happens to a rank, nothing hangs."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.integration import backends
from tests.integration.leftovers import assert_nothing_left_behind
from trainlib import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError, session
from trainlib._execution.causes import Cause
from trainlib._stacks import stacks_of

# -- something happens to a rank -------------------------------------------------------------------------

LONG_S = 120


def meets_a_fault(config: dict) -> None:
    """Averages for ever, unless something happens to one rank, before it joins or in its third step."""
    wait_for_all(Path(config["folder"]), config["gangs"])
    if config["fault"] == "never joins" and session.get_world_rank() == config["rank"]:
        Path(config["mark"]).write_text(json.dumps([time.time(), os.getpid()]))
        return
    mean = backends.collective(config["backend"])
    for step in range(1000):
        assert mean(float(session.get_world_rank())) == 0.5
        session.report({"step": step})
        if step == 2 and session.get_world_rank() == config["rank"]:
            Path(config["mark"]).write_text(json.dumps([time.time(), os.getpid()]))
            match config["fault"]:
                case "is killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "is stopped":
                    os.kill(os.getpid(), signal.SIGSTOP)
                case "raises":
                    raise ValueError("no more data")
                case "returns early":
                    return
                case "calls no collectives any more":
                    time.sleep(LONG_S)
        if step > 2:
            time.sleep(0.05)


def wait_for_all(folder: Path, gangs: int) -> None:
    """Wait until every rank of every gang is there: what happens then is not slowed down by processes that start."""
    (folder / f"rank-{os.getpid()}").touch()
    deadline = time.monotonic() + LONG_S
    while len(list(folder.glob("rank-*"))) < 2 * gangs:
        assert time.monotonic() < deadline, "another gang is not there"
        time.sleep(0.05)


@dataclass(frozen=True)
class Fault:
    """What happens to a rank, and what a training has to make of it."""

    what: str
    rank: int
    cause: Cause
    is_blamed: bool
    """Whether the error names that rank."""
    within: float
    """So many seconds later, the training has ended."""

    def __str__(self) -> str:
        return f"rank {self.rank} {self.what}"


SIDE_BY_SIDE = [
    [
        Fault("is killed", 0, Cause.WORKER, True, 10),
        Fault("is killed", 1, Cause.WORKER, True, 10),
    ],
    [
        Fault("raises", 1, Cause.USER, True, 10),
        Fault("returns early", 0, Cause.USER, False, 10),
    ],
    [Fault("calls no collectives any more", 1, Cause.USER, False, backends.COLLECTIVE_TIMEOUT_S + 10)],
    [
        Fault("is stopped", 0, Cause.WORKER, True, 15),
        Fault("never joins", 1, Cause.USER, False, 25),
    ],
]


# What the line is in which a rank is stuck, and what the others do meanwhile.
STUCK = {"calls no collectives any more": "time.sleep(LONG_S)", "is stopped": "its process is stopped (SIGSTOP)"}
WAITING = "assert mean(float(session.get_world_rank())) == 0.5"


def assert_stacks_tell(backend: str, fault: Fault, folder: Path) -> None:
    """That ``trainlib stacks`` tells what the ranks of a training are doing once it hangs."""
    mark = mark_of(backend, fault, folder)
    deadline = time.monotonic() + LONG_S
    while not mark.exists():
        assert time.monotonic() < deadline, "nothing has happened to it"
        time.sleep(0.05)
    time.sleep(0.5)  # until it really sleeps, and the other one waits
    ((_, text),) = stacks_of(name_of(backend, fault, folder))
    stuck, waiting = (text.split("\n\n")[rank] for rank in (fault.rank, 1 - fault.rank))
    assert stuck.startswith(f"rank {fault.rank} (")
    assert f"pid {json.loads(mark.read_text())[1]})" in stuck
    assert STUCK[fault.what] in stuck.partition("\nThread ")[0], stuck
    assert WAITING in waiting.partition("\nThread ")[0], waiting


def assert_error_has_stacks(backend: str, fault: Fault, error: TrainingFailedError) -> None:
    """That the error of a training that hung tells what its ranks were doing."""
    notes = "\n".join(getattr(error, "__notes__", []))
    if fault.what in STUCK:
        assert STUCK[fault.what] in notes, backend
        assert WAITING in notes, backend
        assert f"All threads of all ranks: {error.stacks_file}" in notes
        in_full = Path(error.stacks_file).read_text()
        assert STUCK[fault.what] in in_full
        assert "Thread MainThread:" in in_full
    elif backends.of(backend).CAUSES.get(fault.what) is Cause.WORKER:
        assert "strategy = tf.distribute.MultiWorkerMirroredStrategy()" in notes, "where no Python runs any more"


def assert_gone(pid: int) -> None:
    """Ray gives a process five seconds to end by itself, and a stopped one cannot."""
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.1)


@dataclass(frozen=True)
class Failure:
    """How a training failed, how long after the fault, and the process that met it."""

    error: TrainingFailedError
    took: float
    pid: int


def mark_of(backend: str, fault: Fault, folder: Path) -> Path:
    """The file that says when the fault happened, and to which process."""
    return folder / f"{backend} {fault}.json"


def name_of(backend: str, fault: Fault, folder: Path) -> str:
    return f"{backend} {fault} in {folder.name}"


def failure_of(backend: str, fault: Fault, folder: Path, gangs: int) -> Failure:
    mark, named = mark_of(backend, fault, folder), RunConfig(name=name_of(backend, fault, folder))
    config = {"fault": fault.what, "rank": fault.rank, "folder": str(folder), "mark": str(mark), "gangs": gangs}
    # There is room for all of them at once.
    fifths = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.2})
    with pytest.raises(TrainingFailedError) as caught:
        backends.trainer(backend, meets_a_fault, scaling_config=fifths, run_config=named, **config).fit()
    at, pid = json.loads(mark.read_text())
    return Failure(caught.value, time.time() - at, pid)


@pytest.mark.alone
@pytest.mark.parametrize("faults", SIDE_BY_SIDE, ids=lambda faults: ", ".join(map(str, faults)))
def test_nothing_hangs_when_something_happens_to_a_rank(tmp_path, faults):
    """Every fault meets every framework, in trainings that run side by side: most of their time is spent waiting.

    These are all pairs of a fault and a framework, each with one rank. The pair with the other rank is left out where
    that rank does nothing that the fault could meet. Being killed is different: rank 0 hosts the place where the others
    meet, so both ranks are killed.
    """
    pairs = [(backend, fault) for fault in faults for backend in backends.BACKENDS]
    with ThreadPoolExecutor(len(pairs)) as threads:
        failing = [threads.submit(failure_of, *pair, tmp_path, len(pairs)) for pair in pairs]
        for backend, fault in pairs:
            if fault.what == "calls no collectives any more":
                assert_stacks_tell(backend, fault, tmp_path)
    if errors := [error for each in failing if (error := each.exception())]:
        raise BaseExceptionGroup("trainings that did not fail as they should have", errors)
    failures = [each.result() for each in failing]
    for (backend, fault), failure in zip(pairs, failures, strict=True):
        error = failure.error
        assert_error_has_stacks(backend, fault, error)
        assert error.cause is backends.of(backend).CAUSES.get(fault.what, fault.cause), (backend, fault)
        assert (error.rank == fault.rank) is fault.is_blamed, error
        if fault.what in ("returns early", "never joins"):
            assert f"rank {fault.rank} had returned before" in str(error)
        assert failure.took < fault.within, (backend, fault)
    assert_nothing_left_behind()
    for failure in failures:
        assert_gone(failure.pid)


# -- gradients are averaged, also after all that ----------------------------------------------------------

STEPS = 20


def fit_and_write_weights(config: dict) -> None:
    weights = backends.FITS[config["model"]](STEPS)
    rank = session.get_world_rank()
    Path(config["folder"], f"{rank}.json").write_text(json.dumps(weights))
    session.report({"done": 1})


@pytest.mark.parametrize("model", backends.FITS)
def test_ranks_that_start_differently_end_equal_and_as_one_process_would(tmp_path, model):
    """In the process in which all of the above has happened."""
    backend = model.partition(" ")[0]
    backends.trainer(backend, fit_and_write_weights, model=model, folder=str(tmp_path)).fit()

    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first == second, "bitwise, since both have applied the same averaged gradients"
    # Each rank has seen one half of the rows: only averaged gradients lead to where all rows lead.
    np.testing.assert_allclose(first, backends.fit_in_one_process(STEPS), rtol=1e-5)


# -- a resumed curve ---------------------------------------------------------------------------------------

EPOCHS = 6


def train_and_die(config: dict) -> None:
    def die(epoch: int) -> None:
        if epoch == 3 and session.get_world_rank() == 1 and session.get_context().get_attempt() <= config["deaths"]:
            while not Path(session.get_trial_dir(), "checkpoints", "checkpoint_000003").exists():
                time.sleep(0.05)  # until rank 0's checkpoint of this epoch is kept
            os.kill(os.getpid(), signal.SIGKILL)

    backends.of(config["backend"]).train(EPOCHS, die)


@pytest.mark.parametrize("backend", backends.BACKENDS)
def test_a_resumed_curve_continues_the_interrupted_one_exactly(registry, curve, backend):
    retry = RunConfig(failure_config=FailureConfig(max_failures=1))
    trainers = [backends.trainer(backend, train_and_die, deaths=deaths, run_config=retry) for deaths in (0, 1)]
    with ThreadPoolExecutor(2) as threads:
        whole, resumed = threads.map(lambda trainer: trainer.fit(), trainers)

    assert (whole.attempts, resumed.attempts) == (1, 2)
    tags = registry.get_run(resumed.run_id).data.tags
    assert json.loads(tags["trainlib.attempt.001"]).items() >= {"outcome": "worker", "rank": 1}.items()
    assert '"resumed_from": "checkpoint_000003"' in tags["trainlib.attempt.002"]
    assert curve(resumed.run_id, "loss") == curve(whole.run_id, "loss")
    assert [step for step, _ in curve(whole.run_id, "loss")] == list(range(1, EPOCHS + 1))
    assert_nothing_left_behind()
