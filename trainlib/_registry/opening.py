"""Which MLflow run a training has: the one that it began before, or a new one.

Of several processes that want the same run, or a new run of the same name, one gets it; the others get an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trainlib._format import FORMAT
from trainlib._registry import tags as names
from trainlib._registry.attempts import Outcome, recorded_attempts
from trainlib._registry.client import connect, connect_to_begin
from trainlib._registry.experiments import find_or_create_experiment
from trainlib._registry.finding import find_last_named, find_run, find_run_of_flow, find_running, next_generation
from trainlib._registry.fingerprint import Fingerprint
from trainlib._registry.notes import with_flow_run
from trainlib._registry.ownership import (
    EXPIRES_S,
    Lease,
    Occupancy,
    Owner,
    Pulse,
    claim,
    in_use_error,
    is_given_up,
    occupancy,
    release,
    watch,
)
from trainlib._registry.provenance import source_tags
from trainlib._registry.recorded_run import Place
from trainlib._registry.run import RegisteredRun, continue_run, create_run
from trainlib._registry.statuses import SUSPENDED
from trainlib._registry.store import TrackingStore
from trainlib.config import RunConfig

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

_lock = threading.Lock()
_LET_DOWN = (Outcome.STORAGE, Outcome.SERVICE, Outcome.PREEMPTED)


def open_run(
    config: RunConfig,
    *,
    store: TrackingStore,
    default_name: str,
    kind: str,
    run: str | None,
    flow_run_id: str | None,
    tags: Mapping[str, str],
    fingerprint: Fingerprint | None = None,
    require: Callable[[Run], None] = lambda run: None,
    say: Callable[[str], None] = lambda text: None,
) -> RegisteredRun:
    """The run of a training: the one asked for, the one that this flow run began, the last one of that name if it was
    interrupted, or a new one.

    Args:
        config: How it is kept.
        store: Where it is kept.
        default_name: What a new one is called if the config does not say.
        kind: ``training`` or ``sweep``. One does not continue what the other began.
        run: The one asked for, by id or name.
        flow_run_id: The Prefect flow run that it belongs to.
        tags: Further tags to set.
        fingerprint: What is trained. A run that was begun with something else is continued only if it was asked for.
        require: Raises an error for a run that must not be continued. That run is left as it is.
        say: Shows a line: that a run is continued, or why not, or that this has to wait.

    Raises:
        RunNotFoundError: there is no such ``run``.
        RunInUseError: another process is training under that name.
    """
    opening = _Opening(config, store, default_name, kind, run, flow_run_id, tags, fingerprint, require, say)
    while True:
        try:
            with _lock:  # trainings of one process that open a run at the same time must not both take the same one
                return opening.try_to_open()
        except _UndecidedError as error:
            undecided = error.run
        opening.find_out_about(undecided)  # without the lock: it takes a while, and other trainings need not wait


class _UndecidedError(Exception):
    """A run is in the way, and its owner is on another machine: whether it lives has to be found out first."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.info.run_id)
        self.run = run


@dataclass
class _Opening:
    """One call of :func:`open_run`."""

    config: RunConfig
    store: TrackingStore
    default_name: str
    kind: str
    asked_for: str | None
    flow_run_id: str | None
    tags: Mapping[str, str]
    fingerprint: Fingerprint | None
    require: Callable[[Run], None]
    say: Callable[[str], None]
    expired: dict[str, Pulse] = field(default_factory=dict)
    """The runs whose owners are known to be gone by now, since their counters stood still at these pulses."""

    def try_to_open(self) -> RegisteredRun:
        """The run.

        Raises:
            RunInUseError: another process owns it.
            _UndecidedError: another process may own it.
        """
        client = connect_to_begin(self.store)
        if self.asked_for is not None:
            found: Run | None = find_run(client, self.asked_for)
            assert found is not None
            experiment = client.get_experiment(found.info.experiment_id)
        else:
            experiment = find_or_create_experiment(
                client, self.store.uri, name=self.config.experiment_name, storage_path=self.config.storage_path
            )
            found = self._find(client, experiment.experiment_id)
        place = Place.of_experiment(experiment, self.config, self.store)
        if found is None:
            return self._create(client, place)
        match self._occupancy(found):
            case Occupancy.LIVE:
                raise in_use_error(found)
            case Occupancy.UNKNOWN:
                raise _UndecidedError(found)
        different = self._differences(found)
        if not different:
            self.require(found)
        number = Owner.of(found).number + 1
        if not claim(client, found.info.run_id, number):
            raise in_use_error(client.get_run(found.info.run_id))
        try:
            if not different:
                return self._continue(client, found, place, number)
            self._say_what_differs(found, different)
            if found.info.status == "RUNNING":  # nobody goes on with it
                client.set_terminated(found.info.run_id, "KILLED")
            return self._create(client, place)
        finally:
            if different:
                release(client, found.info.run_id, number)

    def find_out_about(self, run: Run) -> None:
        """Watch a run whose owner is on another machine, until it is known whether the owner lives.

        Raises:
            RunInUseError: it does.
        """
        driver = Owner.of(run).driver
        assert driver is not None
        self.say(
            f"{run.info.run_name!r} (MLflow run {run.info.run_id}) was being run by process {driver.pid} on {driver.host}. "
            f"Waiting up to {EXPIRES_S:g} s to see whether that process still lives"
        )
        client = connect(self.store)
        pulse = watch(client, run)
        if pulse is not None:
            self.expired[run.info.run_id] = pulse
        elif self._occupancy(now := client.get_run(run.info.run_id)) in (Occupancy.LIVE, Occupancy.UNKNOWN):
            raise in_use_error(now)

    # -- which run it is ------------------------------------------------------------------------------

    def _find(self, client: MlflowClient, experiment_id: str) -> Run | None:
        """The run that this flow run began, or the last one of that name, if it was interrupted."""
        if (begun := find_run_of_flow(client, experiment_id, self.kind, self.flow_run_id)) is not None:
            return begun
        last = find_last_named(client, experiment_id, self.kind, self.config.name)
        if last is not None and last.info.status not in ("RUNNING", "KILLED", SUSPENDED) and not was_let_down(last):
            # It has ended by itself. But its next owner may just have claimed it.
            return last if self._occupancy(last) in (Occupancy.LIVE, Occupancy.UNKNOWN) else None
        return last

    def _occupancy(self, run: Run) -> Occupancy:
        found = occupancy(run)
        is_expired = self.expired.get(run.info.run_id) == Pulse.of(run)
        return Occupancy.GONE if found is Occupancy.UNKNOWN and is_expired else found

    def _differences(self, run: Run) -> list[str]:
        if self.asked_for is not None or self.fingerprint is None:
            return []
        return self.fingerprint.differences(run.data.tags, run.data.params)

    def _say_what_differs(self, run: Run, different: list[str]) -> None:
        what = " and ".join(different)
        changed = "differ" if len(different) > 1 or different == ["data"] else "differs"
        self.say(
            f"a new run starts: {run.info.run_name!r} was interrupted (MLflow run {run.info.run_id}), but its {what} {changed}. "
            "To go on with that run all the same, restore it"
        )

    # -- opening it -----------------------------------------------------------------------------------

    @property
    def _marks(self) -> dict[str, str]:
        flow_run = {names.FLOW_RUN_ID: self.flow_run_id} if self.flow_run_id else {}
        return {**flow_run, **self.tags}

    def _continue(self, client: MlflowClient, found: Run, place: Place, number: int) -> RegisteredRun:
        run_id = found.info.run_id
        lost = "the process that coordinated it ended"
        marks = {**self._marks, names.FORMAT: str(FORMAT)}
        if names.MLFLOW_NOTE in marks:
            marks[names.MLFLOW_NOTE] = with_flow_run(
                found.data.tags.get(names.MLFLOW_NOTE, ""), marks[names.MLFLOW_NOTE]
            )
        try:
            run = continue_run(client, found, place, self.config.checkpoint_config, tags=marks, lost_message=lost)
        except BaseException:
            release(client, run_id, number)
            raise
        run.lease = Lease(client, run_id, number)
        if self.asked_for is None:
            self.say(
                f"continuing {run.name!r} (MLflow run {run_id}), which was interrupted at iteration {run.iterations_before}. "
                "To start a new run instead, choose another RunConfig.name"
            )
        return run

    def _create(self, client: MlflowClient, place: Place) -> RegisteredRun:
        name = self.config.name
        run = create_run(
            client,
            place,
            self.config.checkpoint_config,
            name=name or self.default_name,
            tags={
                **source_tags(),
                **self._marks,
                **(self._mark_of_name(client, place.experiment_id, name) if name else {}),
                **(self.fingerprint.tags() if self.fingerprint is not None else {}),
                names.KIND: self.kind,
                names.FORMAT: str(FORMAT),
            },
        )
        if name is None:
            run.lease = Lease(client, run.run_id, 0)
            return run
        try:
            self._settle(client, run, name)
        except BaseException:
            _delete(client, run.run_id)
            with suppress(OSError):
                run.log_dir.rmdir()
            raise
        run.lease = Lease(client, run.run_id, 1)
        return run

    def _mark_of_name(self, client: MlflowClient, experiment_id: str, name: str) -> dict[str, str]:
        return {names.NAME: name, names.GENERATION: next_generation(client, experiment_id, self.kind, name)}

    def _settle(self, client: MlflowClient, run: RegisteredRun, name: str) -> None:
        """Find out which process has the new run of this name, if several create one in the same instant.

        Each has created its run before it looks for others. So of any two, one sees the other's. A run belongs to its
        first owner: whoever sees a later one claims it, and so keeps its creator from it; whoever sees an earlier one
        gives up. One that a third process has claimed is in nobody's way: who of the others wins does not depend on it. "Earlier" only has to mean the same to all, so clocks that differ do no harm.

        Raises:
            RunInUseError: it is another process.
        """
        own = (int(run.recorded.started * 1000), run.run_id)
        for other in find_running(client, run.experiment_id, self.kind, name):
            occupied = self._occupancy(other)
            if other.info.run_id == run.run_id or occupied in (Occupancy.FREE, Occupancy.GONE) or is_given_up(other):
                continue
            if occupied is Occupancy.UNKNOWN and names.HEARTBEAT in other.data.tags:  # it was not created just now
                raise _UndecidedError(other)
            is_earlier = (other.info.start_time, other.info.run_id) < own
            if is_earlier or Owner.of(other).number > 0:
                raise in_use_error(other)
            claimed = claim(client, other.info.run_id, 1)
            now = client.get_run(other.info.run_id)
            if now.info.lifecycle_stage == "deleted" or (not claimed and is_given_up(now)):
                continue  # its creator has given up, or a third process keeps it from its creator
            if not claimed:
                raise in_use_error(now)
            _delete(client, now.info.run_id)
        if not claim(client, run.run_id, 1):
            raise in_use_error(client.get_run(run.run_id))


def was_let_down(run: Run) -> bool:
    """Whether a run failed because a disk was full, or a server or a machine was away: it is interrupted, and not over."""
    attempts = recorded_attempts(run.data.tags)
    return run.info.status == "FAILED" and bool(attempts) and attempts[-1].outcome in _LET_DOWN


def _delete(client: MlflowClient, run_id: str) -> None:
    """Delete a run that nobody works on. Two processes may do it at once."""
    from mlflow.exceptions import MlflowException

    with suppress(MlflowException):
        client.delete_run(run_id)
