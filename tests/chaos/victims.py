"""The trainings that faults happen to: ``python -m tests.chaos.victims VICTIM NAME FOLDER STORAGE STEPS``.

Every step reports a value that depends on nothing but the step, and every third one is saved. A step waits until the
runner has opened the gate that far, and is told to the runner through a socket: on a full disk, nothing can be written.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tests.chaos import store  # noqa: F401  # workers find chaos:// by it
from trainlib import Checkpoint, DataParallelTrainer, FailureConfig, RunConfig, ScalingConfig, session, tune

VICTIMS = ("plain", "torch", "tensorflow", "horovod", "sweep")
TRIALS = 3
EVERY = 3
STEP_S = 0.05
PADDING = 100_000


def value_of(trial: int, step: int) -> float:
    """What a step reports."""
    return 1000.0 * trial + step * step


def trials_of(victim: str) -> range:
    """The numbers of its trials. A training is its own only one."""
    return range(TRIALS if victim == "sweep" else 1)


def train_func(config: dict[str, Any]) -> None:
    """The steps from the newest checkpoint on."""
    rank, trial, folder = session.get_world_rank(), int(config.get("trial", 0)), config["folder"]
    average = _average(config["victim"])
    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["step"] + 1 if checkpoint else 0
    runner = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    runner.connect(f"{folder}/progress")
    for step in range(start, config["steps"]):
        _wait_at_the_gate(Path(folder), step)
        assert average(float(rank)) == (session.get_world_size() - 1) / 2
        state = Checkpoint.from_dict({"step": step, "padding": bytes(PADDING)}) if step % EVERY == 0 else None
        session.report({"value": value_of(trial, step)}, checkpoint=state)
        runner.send(f"{trial} {rank} {start} {step} {os.getpid()}".encode())
        time.sleep(STEP_S)


def _average(victim: str) -> Any:
    """The framework's own mean over all ranks, so that a rank that is gone matters to the others."""
    if victim in ("plain", "sweep"):
        return lambda value: (session.get_world_size() - 1) / 2
    from tests.integration import backends

    return backends.collective(victim)


def _wait_at_the_gate(folder: Path, step: int) -> None:
    while int((folder / "gate").read_text() or -1) < step:
        time.sleep(0.02)


def trainer_class(victim: str) -> type[DataParallelTrainer]:
    """The trainer of a victim."""
    if victim in ("plain", "sweep"):
        return DataParallelTrainer
    from trainlib import _rooms as rooms

    return rooms.load(victim).trainer_class()


def main(victim: str, name: str, folder: str, storage: str, steps: str) -> None:
    """Train, or go on with a training that was interrupted."""
    config = {"victim": victim, "folder": folder, "steps": int(steps)}
    run_config = RunConfig(
        name=name,
        experiment_name=name,
        storage_path=storage,
        failure_config=FailureConfig(max_failures=-1),
        verbose=1,
    )
    scaling = ScalingConfig(num_workers=1 if victim == "sweep" else 2)
    trainer = trainer_class(victim)(train_func, train_loop_config=config, scaling_config=scaling, run_config=run_config)
    if victim != "sweep":
        trainer.fit()
        return
    results = tune.Tuner(
        trainer,
        param_space={"train_loop_config": {"trial": tune.grid_search(list(trials_of(victim)))}},
        tune_config=tune.TuneConfig(metric="value", mode="max"),
        run_config=run_config,
    ).fit()
    assert not results.errors, results.errors


if __name__ == "__main__":
    from tests.chaos import victims  # so that workers import the training function, and the store with it

    victims.main(*sys.argv[1:])
