"""Callbacks are called with what they need, and one that raises is named."""

from __future__ import annotations

from typing import Any

from trainlib import Checkpoint
from trainlib._training.notifying import Notifier
from trainlib.callbacks import Callback, LoggerCallback, Trial
from trainlib.sgd import SGDCallback
from trainlib.tune._shared_callbacks import SharedCallbacks


def trial() -> Trial:
    return Trial("a1", "TorchTrainer", {"lr": 0.1}, "/logs", "run")


class Recorded(LoggerCallback):
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def log_trial_start(self, trial: Trial) -> None:
        self.calls.append("start")

    def log_trial_restore(self, trial: Trial) -> None:
        self.calls.append(("restore", trial.checkpoint))

    def log_trial_save(self, trial: Trial) -> None:
        self.calls.append(("save", trial.checkpoint))

    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        self.calls.append(("end", failed, trial.error))


class Broken(Callback):
    def on_trial_result(self, **info: Any) -> None:
        raise ConnectionError("no route")

    def setup(self, **info: Any) -> None:
        raise KeyError("token")


def test_what_a_logger_is_called_with():
    logger, first, second = Recorded(), Checkpoint.from_dict({"step": 1}), Checkpoint.from_dict({"step": 2})
    failure = RuntimeError("lost")
    notifier = Notifier([logger], trial(), print)
    notifier.attempt_starts(1, 0, None)
    notifier.saved(1, first)
    notifier.attempt_starts(2, 1, first)
    notifier.saved(2, second)
    notifier.ended(2, failure)
    assert logger.calls == [
        "start",
        ("save", first),
        ("restore", first),
        ("save", second),
        ("end", True, failure),
    ]


def test_a_process_that_continues_a_training_tells_its_start_and_what_it_is_restored_from():
    logger, kept = Recorded(), Checkpoint.from_dict({"step": 4})
    Notifier([logger], trial(), print).attempt_starts(3, 4, kept)
    assert logger.calls == ["start", ("restore", kept)]


def test_a_callback_that_raises_is_named_once_and_the_others_are_called():
    said: list[str] = []
    logger = Recorded()
    notifier = Notifier([Broken(), logger], trial(), said.append)
    notifier.set_up(None)
    notifier.reported(1, {"loss": 1})
    notifier.reported(2, {"loss": 1})
    notifier.ended(2, None)
    assert len(said) == 2
    assert said[0].startswith("the callback Broken raised KeyError in setup(): 'token'")
    assert said[1].startswith("the callback Broken raised ConnectionError in on_trial_result(): no route")
    assert logger.calls == [("end", False, None)]


def test_in_a_sweep_the_callback_itself_is_named():
    said: list[str] = []
    shared = SharedCallbacks([Broken()], said.append)
    Notifier([shared], trial(), print).reported(1, {})
    shared.begin()
    assert [line.split(" in ")[0] for line in said] == [
        "the callback Broken raised ConnectionError",
        "the callback Broken raised KeyError",
    ]


def test_ranks_send_their_metrics_only_if_a_callback_hears_them():
    class Quiet(SGDCallback):
        pass

    assert not Notifier([Recorded()], trial(), print).hears_all_ranks
    assert Notifier([Recorded(), Quiet()], trial(), print).hears_all_ranks
    assert SharedCallbacks([Quiet()], print).hears_all_ranks
    assert not SharedCallbacks([Recorded()], print).hears_all_ranks
