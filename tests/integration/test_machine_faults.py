"""What happens to a machine: its Ray dies, its disk is full, its clock is set back. Nothing is lost, and the cause is clear."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.integration.led_by_hand import abandon
from tests.integration.test_runs_in_the_registry import opened
from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, session
from trainlib._registry.attempts import Outcome, recorded_attempts
from trainlib._registry.checkpoints import as_checkpoint
from trainlib._registry.finding import find_run
from trainlib._registry.logged_models import read_checkpoints
from trainlib.callbacks import Callback

STEPS = 30

# What a script prints goes through another process then, and so to a terminal that works when the disk is full.
THROUGH_A_PIPE = """
    import os, subprocess
    terminal = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    os.dup2(terminal.stdin.fileno(), 1)
    os.dup2(terminal.stdin.fileno(), 2)
"""
SCRIPT = """
    import json, os, sys, time
    from pathlib import Path
    from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, TrainingFailedError, session

    def train_func(config):
        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["step"] + 1 if checkpoint else 0
        folder = Path(config["folder"])
        (folder / f"attempt-{session.get_context().get_attempt()}").mkdir(exist_ok=True)
        (folder / f"worker-{os.getpid()}").mkdir(exist_ok=True)
        for step in range(start, config["steps"]):
            try:
                session.report({"step": step, "start": start}, checkpoint=Checkpoint.from_dict({"step": step}))
            except Exception:
                (folder / "refused").mkdir()
                raise
            (folder / f"step-{step}").mkdir(exist_ok=True)
            while step % 10 == 3 and not (folder / f"go-{step // 10}").exists():
                time.sleep(0.05)
            time.sleep(0.1)

    name, folder, steps = sys.argv[1:]
    try:
        result = DataParallelTrainer(
            train_func,
            train_loop_config={"folder": folder, "steps": int(steps)},
            scaling_config=ScalingConfig(num_workers=2),
            run_config=RunConfig(name=name),
        ).fit()
        told = {"attempts": result.attempts, "start": result.metrics["start"], "run_id": result.run_id}
    except TrainingFailedError as error:
        told = {"cause": error.cause, "message": str(error)}
    print(json.dumps(told), flush=True)
"""


def kill(pid: int, name: str) -> None:
    """Kill one of the processes of a driver's own Ray."""
    (found,) = [child for child in psutil.Process(pid).children(recursive=True) if child.name() == name]
    found.kill()


def test_a_training_outlives_the_ray_of_its_own_process(driver, tmp_path, curve, registry):
    """Its GCS is killed, then its raylet. Ray would end the process of a driver without a GCS after a minute."""
    process = driver(SCRIPT, f"ray-lost-{os.getpid()}", str(tmp_path), str(STEPS), own_ray=True)
    for number, victim in enumerate(("gcs_server", "raylet")):
        process.wait_for((tmp_path / f"step-{10 * number + 3}").exists)
        kill(process.process.pid, victim)
        process.wait_for((tmp_path / f"attempt-{number + 2}").exists)
        (tmp_path / f"go-{number}").touch()
    (tmp_path / "go-2").touch()

    assert process.wait() == 0, process.output
    told = process.last_json()
    assert told["attempts"] == 3, process.output
    assert told["start"] >= 13
    for victim in ("gcs_server", "raylet"):
        assert f"the Ray that this training ran on is gone: its process {victim} (" in process.output
    assert process.output.count("starting Ray again") == 2
    assert "Traceback" not in process.output
    assert curve(told["run_id"], "step") == [(step + 1, float(step)) for step in range(STEPS)]
    run = registry.get_run(told["run_id"])
    outcomes = [attempt.outcome for attempt in recorded_attempts(run.data.tags)]
    assert outcomes == [Outcome.PREEMPTED, Outcome.PREEMPTED, Outcome.FINISHED]


# The tests have no time for the real ones.
SHORT_GRACE = """
    from trainlib._execution import liveness
    liveness.CHECK_EVERY_S, liveness.GRACE_S = 0.2, 5.0
"""


@contextmanager
def stopped_gcs() -> Iterator[None]:
    """The GCS of the session's Ray does nothing for as long as the block runs, as one that is about to be restarted."""
    (gcs,) = [child for child in psutil.Process().children(recursive=True) if child.name() == "gcs_server"]
    gcs.suspend()
    try:
        yield
    finally:
        gcs.resume()


def test_ray_starts_however_slow_its_agents_are(driver, tmp_path):
    """They are Python processes, which take long to start on a busy machine: longer than the 15 s that Ray itself gives them."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, time\nif any(each.endswith(('agent.py', 'agent/main.py')) for each in sys.orig_argv):\n    time.sleep(25)\n"
    )
    started = driver(
        """
        import ray
        from trainlib._execution import cluster

        cluster.connect()
        print(ray.get(ray.remote(lambda: 42).remote()))
        """,
        own_ray=True,
        own_server=True,
        PYTHONPATH=str(tmp_path),
    )
    assert started.wait() == 0, started.output
    assert started.last_json() == 42


def test_a_gcs_that_is_away_for_a_while_is_waited_for_and_one_that_stays_away_is_lost(
    driver, tmp_path, curve, registry
):
    process = driver(SHORT_GRACE + SCRIPT, f"gcs-away-{os.getpid()}", str(tmp_path), "20")
    process.wait_for((tmp_path / "step-3").exists)
    with stopped_gcs():
        (tmp_path / "go-0").touch()
        process.wait_for((tmp_path / "step-13").exists)
    with stopped_gcs():
        process.wait_for(lambda: "waiting for Ray at" in process.output, timeout=30)
    process.wait_for((tmp_path / "attempt-2").exists)
    (tmp_path / "go-1").touch()

    assert process.wait() == 0, process.output
    told = process.last_json()
    assert told["attempts"] == 2, "the first absence was short"
    assert told["start"] == 14, "nothing that was reported is lost"
    assert "the Ray that this training ran on is gone: its GCS at" in process.output
    assert "Traceback" not in process.output
    assert curve(told["run_id"], "step") == [(step + 1, float(step)) for step in range(20)]
    outcomes = [attempt.outcome for attempt in recorded_attempts(registry.get_run(told["run_id"]).data.tags)]
    assert outcomes == [Outcome.PREEMPTED, Outcome.FINISHED]


@contextmanager
def full_disk(pids: list[int]) -> Iterator[None]:
    """No process of these can write to any file as long as the block runs. It takes a limit that needs no rights."""
    limits = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, (_, hard) in limits.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid, before in limits.items():
            if psutil.pid_exists(pid):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_a_failure_of_storage_and_a_rerun_goes_on(
    driver, run_here, tmp_path, curve, registry, newest_run
):
    name = f"full-disk-{os.getpid()}"
    process = driver(THROUGH_A_PIPE + SCRIPT, name, str(tmp_path), "10")
    process.wait_for((tmp_path / "step-3").exists)
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    with full_disk([process.process.pid, *workers]):
        (tmp_path / "go-0").touch()
        process.wait_for((tmp_path / "refused").exists)
    assert process.wait() == 0, process.output
    told = process.last_json()
    assert told["cause"] == "storage"
    assert "could not be written to" in told["message"]
    assert "File too large. Free space there" in told["message"]
    run = newest_run(name)
    assert run.info.status == "FAILED"

    told = run_here(SCRIPT, name, str(tmp_path), "10")
    assert told["run_id"] == run.info.run_id, "a machine let it down, so the next process goes on with it"
    assert told["start"] >= 1
    assert curve(run.info.run_id, "step") == [(step + 1, float(step)) for step in range(10)]
    found = read_checkpoints(registry, run.info.experiment_id, run.info.run_id)
    assert found.unfinished == ()
    assert [saved.index for saved in found.saved] == list(range(10))
    assert [as_checkpoint(saved).to_dict()["step"] for saved in found.saved] == list(range(10))
    assert list(Path(os.environ["TRAINLIB_HOME"]).rglob(".staging")) == []


# -- the clock -------------------------------------------------------------------------------------------

HOUR = 3600.0


def test_the_newest_run_of_a_name_is_the_one_that_was_created_last(registry, monkeypatch):
    """Even if the clock was set back before it was: otherwise an interrupted training would begin anew."""
    first = opened("set-back")
    first.close("FINISHED")
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() - HOUR)
    second = opened("set-back")
    assert second.run_id != first.run_id
    abandon(second)
    assert registry.get_run(second.run_id).info.start_time < registry.get_run(first.run_id).info.start_time
    third = opened("set-back")
    assert third.run_id == second.run_id
    assert find_run(registry, "set-back").info.run_id == second.run_id
    third.close("FINISHED")


def train_while_the_clock_is_set_back() -> None:
    clock = time.time
    try:
        for step in range(8):
            if step == 4:
                time.time = lambda: clock() - HOUR
            session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))
            time.sleep(0.1)
    finally:
        time.time = clock


class SetsBack(Callback):
    """Sets the clock of the coordinating process back while it trains."""

    def __init__(self, monkeypatch) -> None:
        self._monkeypatch = monkeypatch

    def on_trial_result(self, iteration, trials, trial, result, **info):
        if result["step"] == 4:
            clock = time.time
            self._monkeypatch.setattr(time, "time", lambda: clock() - HOUR)


def test_a_clock_that_is_set_back_changes_no_duration_and_no_order(registry, curve, monkeypatch):
    began = time.monotonic()
    result = DataParallelTrainer(
        train_while_the_clock_is_set_back,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(callbacks=[SetsBack(monkeypatch)]),
    ).fit()
    took = time.monotonic() - began
    monkeypatch.undo()
    table = result.metrics_dataframe
    assert table["step"].tolist() == list(range(8))
    assert (table["timestamp"].diff()[4:] < -HOUR / 2).any(), "the clock was set back"
    assert table["time_this_iter_s"].between(0, took).all()
    assert table["time_total_s"].is_monotonic_increasing
    assert table["time_total_s"].between(0, took).all()
    assert result.checkpoint.to_dict()["step"] == 7
    assert sorted(curve(result.run_id, "step")) == [(step + 1, float(step)) for step in range(8)]
    run = registry.get_run(result.run_id)
    assert run.data.metrics["step"] == 7.0, "the newest value is that of the last step, and not the latest by the clock"
    found = read_checkpoints(registry, run.info.experiment_id, result.run_id)
    seconds = [saved.seconds for saved in found.saved]
    assert seconds == sorted(seconds)
    assert json.loads(run.data.tags["trainlib.attempt.001"])["outcome"] == "finished"
