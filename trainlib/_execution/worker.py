"""The worker: one Ray actor, which is one process of a gang."""

from __future__ import annotations

import ctypes
import importlib
import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
import ray

import trainlib
from trainlib import _storage as storage
from trainlib import session
from trainlib._execution.events import Failed, Finished, WorkerEvent
from trainlib._execution.gpus import gpu_order
from trainlib._execution.latest_checkpoints import LatestCheckpoint, Place
from trainlib._execution.outbox import Outbox, prints_into
from trainlib._execution.own_seed import recording_own_seed
from trainlib._execution.pool.script import Script, replace_environment
from trainlib._execution.reset import fresh_imports, process_state
from trainlib._execution.reset.left_behind import Handover
from trainlib._execution.stacks.dump import prepare
from trainlib._execution.stacks.frames import ProcessStacks, own_stacks
from trainlib._execution.worker_session import Assignment, StopTraining, WorkerSession
from trainlib._importing import without_collecting
from trainlib.checkpoint import Checkpoint

# As <malloc.h> numbers them.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


@dataclass(frozen=True)
class WorkerFacts:
    """Where a worker is."""

    node_id: str
    node_ip: str
    hostname: str
    pid: int
    version: str = ""
    """That of its trainlib."""
    gpus: tuple[str, ...] = ()
    """The ids of the GPUs that it has reserved."""


@ray.remote(  # type: ignore[call-overload]
    num_cpus=0,  # the gang's placement group holds the reservation, so that an idle worker blocks nobody
    max_restarts=0,
    max_task_retries=0,
    concurrency_groups={"events": 1, "control": 2, "storage": 1, "checkpoints": 2},
)
class Worker:
    """Runs training functions, one at a time. It knows nothing of retries or of MLflow."""

    def __init__(
        self,
        threads: int,
        state_module: str | None,
        yielding: bool,
        environment: tuple[tuple[str, str], ...] | None = None,
        env_vars: tuple[tuple[str, str], ...] = (),
    ) -> None:
        prepare()
        fresh_imports.install()
        if environment is not None:
            replace_environment(environment)
        os.environ.update(env_vars)
        # Before the framework is imported: thread pools are sized when it is.
        os.environ["OMP_NUM_THREADS"] = str(threads)
        _keep_freed_memory()
        with without_collecting():
            if state_module and yielding:
                _import_yielding(state_module)
            elif state_module:
                importlib.import_module(state_module)
        self._state_module = state_module
        self._outbox = Outbox()
        self._session: WorkerSession | None = None
        self._thread: threading.Thread | None = None
        self._state = process_state.snapshot(state_module)
        self._handover = Handover.now(state_module) if environment is not None else None

    @ray.method(concurrency_group="control")
    def facts(self) -> WorkerFacts:
        """Where it is. An answer also shows that it is alive."""
        context = ray.get_runtime_context()
        return WorkerFacts(
            node_id=context.get_node_id(),
            node_ip=ray.util.get_node_ip_address(),
            hostname=socket.gethostname(),
            pid=os.getpid(),
            version=trainlib.__version__,
            gpus=tuple(sorted(context.get_accelerator_ids()["GPU"], key=gpu_order)),
        )

    @ray.method(concurrency_group="control")
    def stacks(self) -> ProcessStacks:
        """What all threads of this process are doing."""
        return own_stacks()

    def enter(self, script: Script) -> None:
        """Find files, modules and settings where the script does that uses this worker from now on, until it is reset."""
        script.enter()

    def execute(self, function: bytes) -> Any:
        """Call a pickled function of no arguments and return its value."""
        return pickle.loads(function)()

    def start(self, function: bytes, assignment: Assignment, resume_from: Checkpoint | None) -> None:
        """Start the training function; :meth:`poll` returns what happens in it."""
        assignment = replace(assignment, resume_from=resume_from)
        os.environ.update(assignment.environment)
        sys.path += [path for path in assignment.import_path if path not in sys.path]
        if assignment.context.world_rank == 0 and assignment.staging is not None:
            _require_staging(Path(assignment.staging), assignment.shares_disk)
        self._outbox = Outbox(gathers_reports=not assignment.in_step)
        self._session = WorkerSession(assignment, self._outbox)
        self._thread = threading.Thread(
            target=self._run, args=(function, self._session), name="training-function", daemon=True
        )
        self._thread.start()

    def _run(self, function: bytes, running: WorkerSession) -> None:
        session.enter(running)
        outcome: WorkerEvent
        try:
            with (
                prints_into(self._outbox),
                running.directory.entered(running.context.world_rank),
                recording_own_seed(running),
            ):
                value = pickle.loads(function)()
            outcome = Finished(_portable(value), running.reports, time.monotonic())
        except StopTraining as stop:
            outcome = Finished(_portable(None), running.reports, stop.at)
        except BaseException as error:  # even SystemExit: it ends the training function, not the worker
            outcome = Failed.of(error)
        finally:
            session.enter(None)
            running.has_ended()
        self._outbox.put(outcome)

    @ray.method(concurrency_group="events")
    def poll(self, timeout: float, slowest: int) -> list[WorkerEvent]:
        """What has happened since the last call; waits up to ``timeout`` seconds for something to happen."""
        if self._session is not None and not self._session.in_step:
            self._session.slowest_is_at(slowest)
        return self._outbox.drain(timeout)

    @ray.method(concurrency_group="control")
    def go_on(self, slowest: int) -> None:
        """All ranks have reported this often, and the training goes on."""
        if self._session is not None:
            self._session.slowest_is_at(slowest)

    @ray.method(concurrency_group="control")
    def stop(self, slowest: int) -> None:
        """End the training function at its next report. ``slowest`` is what :meth:`go_on` was last called with."""
        if self._session is not None:
            self._session.stop(slowest)

    @ray.method(concurrency_group="control")
    def others_left(self, ranks: list[int]) -> None:
        """These ranks have returned, and will read no more epochs."""
        if self._session is not None:
            self._session.others_left(ranks)

    @ray.method(concurrency_group="control")
    def settle_checkpoints(self, newest: int) -> None:
        """The checkpoints up to this number wait on this disk no more."""
        if self._session is not None:
            self._session.settle_checkpoints(newest)

    @ray.method(concurrency_group="checkpoints")
    def latest_checkpoint(self, place: Place, timeout: float) -> LatestCheckpoint:
        """Rank 0 alone: the checkpoint that was the newest one when it was where another rank is."""
        assert self._session is not None, "whoever asks is in the same attempt"
        return self._session.hand_out_latest(place, timeout)

    @ray.method(concurrency_group="storage")
    def store(self, staged: str, location: str) -> None:
        """Bring a staged checkpoint to where it is kept."""
        storage.upload(Path(staged), location)

    @ray.method(concurrency_group="control")
    def clear_staging(self) -> None:
        """Rank 0 alone: remove all snapshots of checkpoints. Those that matter are stored."""
        if self._session is not None:
            self._session.clear_staging()

    def reset(self) -> str | None:
        """Make it ready for another training function. Returns None, or what prevents that."""
        if self._thread is not None:
            self._thread.join(timeout=1.0)
            if self._thread.is_alive():
                return "the training function is still running"
        self._session = self._thread = None
        self._outbox = Outbox()
        return process_state.restore(self._state, self._state_module)

    def left_behind(self) -> tuple[str, ...]:
        """What a script has left behind in this worker, which was reset after it, and that no other script may find."""
        assert self._handover is not None, "a worker of one script alone is not handed on"
        return self._handover.left_behind()


def _keep_freed_memory() -> None:
    """Have the C library keep what a training step frees for the next step.

    In a thread, which is where training functions run, it returns it to the system at once. The next step then gets
    every page anew, which costs a small network a fifth of its speed.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return  # another system, or another C library
    mallopt(_MMAP_THRESHOLD, 32 * 1024**2)
    mallopt(_TRIM_THRESHOLD, 256 * 1024**2)


def _import_yielding(module: str) -> None:
    """Import only with processor time that nobody else wants: others are training."""

    def load() -> None:
        # Linux schedules threads, not processes, so this binds no other thread of this process.
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        importlib.import_module(module)

    if hasattr(os, "SCHED_IDLE"):
        thread = threading.Thread(target=load)
        thread.start()
        thread.join()
    importlib.import_module(module)  # raises here what it raised there


def _require_staging(folder: Path, shares_disk: bool) -> None:
    if not shares_disk:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise RuntimeError(
            f"node {socket.gethostname()} ({ray.util.get_node_ip_address()}), where rank 0 is, does not see the folder {folder}, "
            "where checkpoints are to be kept. Keep them where every node can write, RunConfig(storage_path='s3://bucket/trainings') "
            "or a shared disk, or have them go through an MLflow server: set MLFLOW_TRACKING_URI=http://host:5000."
        )


def _portable(value: Any) -> bytes:
    """What a training function returned, pickled. What cannot be pickled, such as a lock, becomes None."""
    try:
        return cloudpickle.dumps(value)
    except Exception:
        return cloudpickle.dumps(None)


def pickled(function: Callable[..., Any], *args: Any) -> bytes:
    """A function and its arguments, as a worker takes them."""
    return cloudpickle.dumps(lambda: function(*args))
