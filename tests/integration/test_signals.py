"""However its process ends, a training leaves a clear state behind, and can be continued."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from trainlib import cli
from trainlib._cli.exit_codes import ExitCode

SCRIPT = """
    import json, os, sys, time
    from pathlib import Path
    from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, session
    from trainlib.torch import TorchTrainer

    def train_func(config):
        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        for epoch in range(start, config["epochs"]):
            session.report({"epoch": epoch, "start": start}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
            if session.get_world_rank() == 0:
                Path(config["alive"]).write_text(f"{epoch} {os.getpid()}")
            time.sleep(float(Path(config["alive"] + ".pause").read_text()))  # a config that changes is another training

    name, alive, pause, framework = sys.argv[1:]
    Path(alive + ".pause").write_text(pause)
    result = (TorchTrainer if framework == "torch" else DataParallelTrainer)(
        train_func,
        train_loop_config={"alive": alive, "epochs": 12},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name=name),
    ).fit()
    print(json.dumps({
        "run_id": result.run_id, "epoch": result.metrics["epoch"], "start": result.metrics["start"],
        "iterations": result.metrics_dataframe["training_iteration"].tolist(),
        "epochs": [int(value) for value in result.metrics_dataframe["epoch"]],
    }))
"""


def epoch_reached(alive: Path) -> int:
    return int(alive.read_text().split()[0]) if alive.exists() and alive.read_text() else -1


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_dead(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline, f"worker {pid} outlived its driver"
        time.sleep(0.1)


def assert_stacks_are_told(name: str, rank_zero: int, capsys) -> None:
    """Another process, this one, can ask what the ranks are doing, although they have a Ray of their own."""
    asked = time.monotonic()
    assert cli.main(["stacks", name]) == 0
    assert time.monotonic() - asked < 5
    told = capsys.readouterr().out
    assert told.startswith(f"{name} (MLflow run ")
    assert (
        f"\nrank 0 ({socket.gethostname()}, pid {rank_zero})\nTraining function (thread training-function):\n" in told
    )
    assert told.count("time.sleep(float(Path(config") == 2, told


def assert_stacks_are_told_elsewhere(name: str, rank_zero: int, capsys, monkeypatch) -> None:
    """A process of another machine, as this one is by another name, can ask through the cluster."""
    with monkeypatch.context() as patched:
        patched.setattr(socket, "gethostname", lambda: "elsewhere")
        assert cli.main(["stacks", name]) == 0
    told = capsys.readouterr().out
    assert f"\nrank 0 ({socket.gethostname()}, pid {rank_zero})\nTraining function (thread 0x" in told
    assert told.count("time.sleep(float(Path(config") == 2, told


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_a_training_cleanly_and_it_goes_on(
    driver, run_here, tmp_path, newest_run, flow_state, curve, capsys, monkeypatch, number
):
    """Ctrl-C one with everything of its own, and SIGTERM one that has joined a Prefect server and a Ray."""
    name = f"signalled-{number.name}-{os.getpid()}"
    alive = tmp_path / "alive"
    own = number is signal.SIGINT
    process = driver(SCRIPT, name, str(alive), "0.5", "torch" if own else "none", own_server=own, own_ray=own)
    process.wait_for(lambda: epoch_reached(alive) >= 1)
    worker = int(alive.read_text().split()[1])
    if own:
        assert_stacks_are_told(name, worker, capsys)
    else:
        Path(f"{alive}.pause").write_text("30")  # so that it is not over by then
        assert_stacks_are_told_elsewhere(name, worker, capsys, monkeypatch)

    sent = time.monotonic()
    process.process.send_signal(number)
    code = process.wait(timeout=20)
    took = time.monotonic() - sent

    assert code != 0
    assert took < 10, f"it took {took:.1f} s:\n{process.output}"
    run = newest_run(name)
    assert run.info.status == "KILLED"
    assert '"outcome": "cancelled"' in run.data.tags["trainlib.attempt.001"]
    assert flow_state(run.data.tags["trainlib.flow_run_id"]) in ("CRASHED", "CANCELLED")
    wait_until_dead(worker)
    assert process.output.count("Traceback") <= 1, process.output
    assert "SIGTERM received" not in process.output, process.output
    assert "/prefect/" not in process.output, process.output  # no frame of its engine

    outcome = run_here(SCRIPT, name, str(alive), "0", "torch" if own else "none")
    assert outcome["run_id"] == newest_run(name).info.run_id == run.info.run_id, "the same run goes on"
    assert outcome["start"] >= 1, "and not from the start"
    assert curve(run.info.run_id, "epoch") == [(epoch + 1, float(epoch)) for epoch in range(12)]
    assert newest_run(name).info.status == "FINISHED"
    capsys.readouterr()
    assert cli.main(["stacks", run.info.run_id]) == ExitCode.REFUSED
    assert "does not run: its status is FINISHED" in capsys.readouterr().err
    assert cli.main(["stacks", "never-heard-of"]) == ExitCode.NOT_FOUND
    assert "no training named 'never-heard-of'" in capsys.readouterr().err


def test_a_training_whose_process_was_killed_is_continued_by_running_it_again(
    driver, run_here, tmp_path, newest_run, curve, flow_state, capsys
):
    name = f"killed-{os.getpid()}"
    alive = tmp_path / "alive"
    first = driver(SCRIPT, name, str(alive), "0.5", "none", own_ray=True)
    first.wait_for(lambda: epoch_reached(alive) >= 4)
    worker = int(alive.read_text().split()[1])
    first.process.kill()
    first.process.wait()
    wait_until_dead(worker)
    interrupted = newest_run(name)
    assert interrupted.info.status == "RUNNING", "nobody could end it"
    assert cli.main(["stacks", name]) == ExitCode.REFUSED
    assert "does not run: its process ended without a word" in capsys.readouterr().err
    flow_run_before = interrupted.data.tags["trainlib.flow_run_id"]

    outcome = run_here(SCRIPT, name, str(alive), "0", "none")
    run = newest_run(name)
    assert outcome["run_id"] == run.info.run_id == interrupted.info.run_id
    assert run.info.status == "FINISHED"
    assert outcome["epoch"] == 11
    assert outcome["start"] >= 3, "it goes on from a checkpoint of the killed process"
    assert curve(run.info.run_id, "epoch") == [(epoch + 1, float(epoch)) for epoch in range(12)]
    assert outcome["iterations"] == list(range(1, 13)), "the table also has what the killed process made"
    assert outcome["epochs"] == list(range(12))
    assert '"outcome": "lost"' in run.data.tags["trainlib.attempt.001"]
    assert '"outcome": "finished"' in run.data.tags["trainlib.attempt.002"]
    assert flow_state(flow_run_before) == "CRASHED", "the killed process's flow run does not look as if it ran"
    assert list(Path(os.environ["TRAINLIB_HOME"]).rglob(".staging")) == []


RESTORE = """
    import json, sys
    from pathlib import Path
    from trainlib import DataParallelTrainer

    Path(sys.argv[2] + ".pause").write_text("0")
    result = DataParallelTrainer.restore(
        sys.argv[1], train_loop_config={"alive": sys.argv[2], "epochs": 12, "changed": True}
    ).fit()
    print(json.dumps({"run_id": result.run_id, "epoch": result.metrics["epoch"], "start": result.metrics["start"]}))
"""


def test_restore_continues_a_training_in_another_process(driver, run_here, tmp_path, newest_run):
    name = f"restored-{os.getpid()}"
    alive = tmp_path / "alive"
    first = driver(SCRIPT, name, str(alive), "0.5", "none")
    first.wait_for(lambda: epoch_reached(alive) >= 3)
    first.process.send_signal(signal.SIGINT)
    first.wait()
    run_id = newest_run(name).info.run_id

    outcome = run_here(RESTORE, run_id, str(alive))
    assert outcome["run_id"] == run_id
    assert outcome["start"] >= 3
    assert outcome["epoch"] == 11
    assert newest_run(name).info.status == "FINISHED"


USER_ERROR = """
    from trainlib import DataParallelTrainer, ScalingConfig, session, RunConfig, FailureConfig
    import sys, time

    def train_func():
        session.report({"epoch": 0})
        if session.get_world_rank() == 1:
            raise ValueError("the learning rate is a banana")
        time.sleep(120)

    DataParallelTrainer(
        train_func,
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name=sys.argv[1], failure_config=FailureConfig(max_failures=3)),
    ).fit()
"""


def test_an_error_of_the_training_function_is_retried_once_and_shown_once(driver, newest_run, flow_state):
    name = f"user-error-{os.getpid()}"
    started = time.monotonic()
    process = driver(USER_ERROR, name)
    code = process.wait()

    assert code == 1
    assert time.monotonic() - started < 60, "the other rank would have slept for two minutes"
    assert process.output.count('raise ValueError("the learning rate is a banana")') == 1, process.output
    assert process.output.count("in the training function:") == 1
    error, _, reason = process.output.strip().splitlines()[-3:]
    assert error.startswith("trainlib.errors.TrainingFailedError: rank 1 (node ")
    assert "raised ValueError: the learning rate is a banana (attempt 2)" in error
    assert reason.startswith("It was not tried again: an earlier attempt raised the same exception in the same line")
    assert "/prefect/" not in process.output, process.output  # no frame of its engine
    run = newest_run(name)
    assert run.info.status == "FAILED"
    assert run.data.tags["trainlib.attempts"] == "2"
    assert flow_state(run.data.tags["trainlib.flow_run_id"]) == "FAILED"
