"""What the user's callbacks rely on."""

from __future__ import annotations

from typing import Any

from trainlib import Checkpoint, DataParallelTrainer, RunConfig, session
from trainlib.callbacks import Callback, LoggerCallback


class Saves(LoggerCallback):
    """Reads each checkpoint when it hears of it, as a callback that copies it elsewhere would."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def log_trial_save(self, trial: Any) -> None:
        self.steps.append(trial.checkpoint.to_dict()["step"])


class Order(Callback):
    """Remembers what it was called with, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: dict, **info: Any) -> None:
        self.seen.append(("result", iteration))

    def on_checkpoint(self, iteration: int, trials: Any, trial: Any, checkpoint: Checkpoint, **info: Any) -> None:
        assert checkpoint.to_dict()["step"] == iteration
        self.seen.append(("checkpoint", iteration))


def save_each_step() -> None:
    for step in range(1, 5):
        session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))


def test_callbacks_hear_of_each_checkpoint_once_it_can_be_read():
    saves, order = Saves(), Order()
    DataParallelTrainer(save_each_step, run_config=RunConfig(callbacks=[saves, order])).fit()
    assert saves.steps == [1, 2, 3, 4]
    assert [iteration for kind, iteration in order.seen if kind == "result"] == [1, 2, 3, 4]
    assert [iteration for kind, iteration in order.seen if kind == "checkpoint"] == [1, 2, 3, 4]
    for step in range(1, 5):
        assert order.seen.index(("result", step)) < order.seen.index(("checkpoint", step))
