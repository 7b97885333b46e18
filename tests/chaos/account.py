"""The account of a training: what was lost by the faults in it, and what was left behind."""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from mlflow import MlflowClient

from tests.chaos import store, victims
from tests.chaos.plans import Plan
from tests.chaos.scene import Scene
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.logged_models import read_checkpoints

__all__ = ["Account", "Witness", "table", "take"]

# What ends by itself a moment after the training has, such as the processes of its workers.
_PATIENCE_S = 15.0

COLUMNS = (
    *("steps lost", "points lost", "points doubled", "points wrong", "runs not right", "half checkpoints"),
    *("processes left", "actors left", "groups left", "files left"),
)


@dataclass
class Witness:
    """What is known of a training besides what MLflow knows."""

    plan: Plan
    folder: Path
    storage: Path
    starts: Sequence[tuple[int, int]] = ()
    pids: set[int] = field(default_factory=set)
    sessions: Sequence[int] = ()
    """The drivers. Each leads a session of processes."""
    made: int = 0
    seconds: float = 0.0
    gave_up: int = 0
    """How often the script ended although no fault had ended it."""
    problems: list[str] = field(default_factory=list)
    saved: list[tuple[int, dict[int, int]]] = field(default_factory=list)
    """Before each fault: how many starts there had been, and the step of the newest checkpoint of each trial."""

    def saw_checkpoints(self, scene: Scene, starts: int) -> None:
        """Keep in mind what was saved before a fault."""
        client = MlflowClient(scene.mlflow.uri)
        newest = {}
        for trial, run in _trials(client, self.plan).items():
            saved = read_checkpoints(client, run.info.experiment_id, run.info.run_id).saved
            newest[trial] = max((each.iteration - 1 for each in saved), default=-1)
        self.saved.append((starts, newest))


@dataclass(frozen=True)
class Account:
    """How a training came out."""

    plan: Plan
    counts: dict[str, int]
    """How much is wrong, by :data:`COLUMNS`."""
    problems: list[str]
    """What is wrong, in words."""
    repeated: int
    """How many steps were made more than once, because they came after the newest checkpoint."""
    drivers: int
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, and nothing is left."""
        return not self.problems and not any(self.counts.values())


def take(witness: Witness, scene: Scene) -> Account:
    """The account of a training that has ended."""
    counts: Counter[str] = Counter()
    problems = list(witness.problems)

    def wrong(column: str, what: str, number: int = 1) -> None:
        if number:
            counts[column] += number
            problems.append(f"{column}: {what}")

    client = MlflowClient(scene.mlflow.uri)
    runs = _runs(client, witness.plan)
    trials = _trials(client, witness.plan)
    expected = len(victims.trials_of(witness.plan.victim)) + (witness.plan.victim == "sweep")
    wrong("runs not right", f"{len(runs)} instead of {expected}", abs(len(runs) - expected))
    for run in runs:
        if run.info.status != "FINISHED":
            wrong("runs not right", f"{run.info.run_name} is {run.info.status}")
    for trial in victims.trials_of(witness.plan.victim):
        _check_points(client, witness.plan, trial, trials.get(trial), wrong)
    kept = [location for run in trials.values() for location in _check_checkpoints(client, run, wrong)]
    for trial, start, newest in _starts_too_early(witness):
        wrong("steps lost", f"trial {trial} began at {start}, but {newest} was saved", newest + 1 - start)
    for path in _files_left(witness, kept, [run.info.run_id for run in runs]):
        wrong("files left", str(path))
    for process in _patiently(lambda: list(_processes_left(witness))):
        wrong("processes left", process)
    left = _patiently(lambda: {what: number for what, number in scene.ray.ask("left").items() if number})
    for what, number in left.items():
        wrong(f"{what} left", str(number), number)
    if witness.gave_up:
        problems.append(f"the script gave up {witness.gave_up} time(s)")
    steps = witness.plan.steps * len(victims.trials_of(witness.plan.victim))
    return Account(
        witness.plan,
        {column: counts[column] for column in COLUMNS},
        problems,
        repeated=witness.made - steps,
        drivers=len(witness.sessions),
        seconds=witness.seconds,
    )


def _runs(client: MlflowClient, plan: Plan) -> list[Any]:
    experiment = client.get_experiment_by_name(plan.name)
    return list(client.search_runs([experiment.experiment_id])) if experiment is not None else []


def _trials(client: MlflowClient, plan: Plan) -> dict[int, Any]:
    """The run of each trial. A training is its own only one."""
    runs = _runs(client, plan)
    if plan.victim != "sweep":
        return dict(enumerate(runs[:1]))
    params = {
        run.info.run_id: run.data.params.get("train_loop_config/trial", run.data.params.get("trial")) for run in runs
    }
    return {int(params[run.info.run_id]): run for run in runs if params[run.info.run_id] is not None}


Wrong = Callable[..., None]


def _check_points(client: MlflowClient, plan: Plan, trial: int, run: Any, wrong: Wrong) -> None:
    """Every step has one point, with the right value."""
    points = client.get_metric_history(run.info.run_id, "value") if run is not None else []
    found = Counter(point.step - 1 for point in points)
    lost = [step for step in range(plan.steps) if step not in found]
    wrong("points lost", f"trial {trial}: steps {lost}", len(lost))
    doubled = [step for step, number in found.items() if number > 1]
    wrong("points doubled", f"trial {trial}: steps {doubled}", len(doubled))
    other = [point.step - 1 for point in points if point.value != victims.value_of(trial, point.step - 1)]
    wrong("points wrong", f"trial {trial}: steps {other}", len(other))


def _check_checkpoints(client: MlflowClient, run: Any, wrong: Wrong) -> Iterator[str]:
    """Every checkpoint that counts is complete. Gives where they are."""
    found = read_checkpoints(client, run.info.experiment_id, run.info.run_id)
    for left in found.unfinished:
        wrong("half checkpoints", f"{left.location} is still being saved")
    for saved in found.saved:
        yield saved.location
        try:
            state = as_checkpoint(saved).to_dict()
            is_whole = state["step"] == saved.iteration - 1 and len(state["padding"]) == victims.PADDING
        except Exception as error:
            wrong("half checkpoints", f"{saved.location}: {error!r}")
        else:
            wrong("half checkpoints", f"{saved.location} has the wrong content", not is_whole)


def _starts_too_early(witness: Witness) -> Iterator[tuple[int, int, int]]:
    """The starts before the end of what was already saved: trial, first step, and the step of that checkpoint."""
    for number, (trial, start) in enumerate(witness.starts):
        newest = max((saved.get(trial, -1) for before, saved in witness.saved if before <= number), default=-1)
        if start <= newest:
            yield trial, start, newest


def _files_left(witness: Witness, kept: Sequence[str], run_ids: Sequence[str]) -> Iterator[Path]:
    """Files of checkpoints that do not count, and files that wait for something that never comes."""
    whole = {store.ChaosFileSystem._strip_protocol(location) for location in kept}
    for path in witness.storage.rglob("checkpoint_*"):
        if path.is_dir() and not path.is_symlink() and str(path) not in whole:
            yield path
    for pattern in (".staging", "*.part", "unsaved.jsonl"):
        yield from witness.storage.rglob(pattern)
        yield from (witness.folder.parent / "home").rglob(pattern)
    for run_id in run_ids:
        yield from Path(tempfile.gettempdir()).glob(f"trainlib-{run_id}*")


def _processes_left(witness: Witness) -> Iterator[str]:
    for process in psutil.process_iter(["status", "cmdline"]):
        try:
            ours = process.pid in witness.pids or os.getsid(process.pid) in witness.sessions
        except ProcessLookupError:
            continue
        if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
            yield f"{process.pid} {' '.join(process.info['cmdline'] or [])[:100]}"


def _patiently(left: Callable[[], Any]) -> Any:
    """What is left after a while; it is looked at until nothing is."""
    deadline = time.monotonic() + _PATIENCE_S
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def table(accounts: Sequence[Account]) -> str:
    """All accounts, a line each, and their sums."""
    heads = ["seed", "victim", "storage", "faults", "seconds", "scripts", "repeated", *COLUMNS]
    rows = [
        [
            *(str(one.plan.seed), one.plan.victim, one.plan.storage, str(len(one.plan.strikes)), f"{one.seconds:.0f}"),
            *(str(one.drivers), str(one.repeated), *(str(one.counts[column]) for column in COLUMNS)),
        ]
        for one in accounts
    ]
    sums = [sum(len(one.plan.strikes) for one in accounts), sum(round(one.seconds) for one in accounts)]
    sums += [sum(one.drivers for one in accounts), sum(one.repeated for one in accounts)]
    sums += [sum(one.counts[column] for one in accounts) for column in COLUMNS]
    lines = [heads, *rows, ["sum", "", "", *map(str, sums)]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(heads))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
