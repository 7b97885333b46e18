"""Errors as users meet them: what they can be caught as, and that they survive a process boundary."""

from __future__ import annotations

import pickle
import threading

import pytest
from ray.data.preprocessors import StandardScaler

from trainlib import Checkpoint, DataParallelTrainer, Result, session, tune
from trainlib._execution.causes import Cause
from trainlib._execution.held import Held
from trainlib._execution.metrics import as_numbers
from trainlib.errors import InvalidArgumentError, TrainingFailedError, TrainlibError
from trainlib.sgd import Trainer
from trainlib.torch import TorchConfig, TorchTrainer
from trainlib.tune import Tuner

lock = threading.Lock()


def nothing() -> None:
    pass


WRONG = {
    "training function": lambda: TorchTrainer("train"),
    "train_loop_config": lambda: TorchTrainer(nothing, train_loop_config=[1]),
    "scaling_config": lambda: TorchTrainer(nothing, scaling_config=2),
    "run_config": lambda: TorchTrainer(nothing, run_config="x"),
    "torch_config": lambda: TorchTrainer(nothing, torch_config="gloo"),
    "backend_config": lambda: DataParallelTrainer(nothing, backend_config="torch"),
    "datasets": lambda: DataParallelTrainer(nothing, datasets=["train.csv"]),
    "a dataset": lambda: DataParallelTrainer(nothing, datasets={"train": 3}),
    "dataset_config": lambda: DataParallelTrainer(nothing, dataset_config=["train"]),
    "preprocessor": lambda: DataParallelTrainer(nothing, datasets={"train": "x.csv"}, preprocessor="scale"),
    "resume_from_checkpoint": lambda: TorchTrainer(nothing, resume_from_checkpoint=3),
    "a dict of a checkpoint": lambda: Checkpoint.from_dict([1]),
    "reported metrics": lambda: session.report([1]),
    "a reported metric": lambda: as_numbers({"loss": "low"}),
    "backend": lambda: Trainer(5),
    "num_workers": lambda: Trainer("torch", num_workers="2"),
    "what is tuned": lambda: Tuner(7),
    "what is chosen from": lambda: Tuner(tune.uniform(0, 1)),
    "param_space": lambda: Tuner(nothing, param_space=[1]),
    "tune_config": lambda: Tuner(nothing, tune_config=3),
    "a sweep's run_config": lambda: Tuner(nothing, run_config=3),
    "values of a choice": lambda: tune.choice(5),
    "a sampling function": lambda: tune.sample_from(5),
    "a bound": lambda: tune.uniform("low", "high"),
    "a function that cannot be pickled": lambda: DataParallelTrainer(lambda: lock).inspect(),
}


@pytest.mark.parametrize("error", [TypeError, ValueError, TrainlibError])
@pytest.mark.parametrize("argument", WRONG)
def test_a_wrong_type_is_both_kinds_of_error(argument, error):
    with pytest.raises(error) as caught:
        WRONG[argument]()
    assert isinstance(caught.value, InvalidArgumentError)


def test_the_error_survives_a_process_boundary():
    with pytest.raises(
        ValueError, match=r"torch_config is a ray\.data\..*StandardScaler: pass a TorchConfig"
    ) as caught:
        TorchTrainer(nothing, torch_config=StandardScaler(columns=["x"]))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is InvalidArgumentError
    assert str(copy) == str(caught.value)


class StrictError(Exception):
    """It wants other arguments than it keeps, as many exceptions of users do, and so does not unpickle by itself."""

    def __init__(self, loss, step):
        super().__init__(f"{loss} at {step}")
        self.step = step


def test_a_failed_training_survives_a_process_boundary_with_what_was_raised():
    class LocalError(StrictError):
        """Nobody can import it."""

    for raised in (StrictError("nan", 7), LocalError("nan", 7)):
        failed = TrainingFailedError("rank 1 raised", cause=Cause.USER, rank=1, attempt=2)
        failed.__cause__ = raised
        failed.result = Result(metrics={"loss": 1.0}, checkpoint=Checkpoint.from_dict({"epoch": 3}), error=raised)
        copy = pickle.loads(pickle.dumps(failed))
        assert (str(copy), copy.rank, copy.attempt) == ("rank 1 raised", 1, 2)
        assert isinstance(copy.raised, StrictError)
        assert (type(copy.raised).__name__, str(copy.raised), copy.raised.step) == (
            type(raised).__name__,
            "nan at 7",
            7,
        )
        assert copy.result.error is copy.raised
        assert copy.result.checkpoint.to_dict() == {"epoch": 3}
        alone = pickle.loads(pickle.dumps(failed.result))
        assert str(alone.error) == "nan at 7"
        assert failed.result.error is raised, "the original stays as it was"


def test_a_failed_training_whose_worker_died_survives_a_process_boundary():
    failed = TrainingFailedError("rank 1 was lost", cause=Cause.WORKER, rank=1)
    failed.result = Result(error=failed, checkpoint=Checkpoint._of_held(Held(reference=None, session="an earlier one")))
    copy = pickle.loads(pickle.dumps(failed))
    assert copy.result.error is copy
    assert copy.result.checkpoint is None, "it was in the memory of a Ray that has ended"
    assert failed.result.checkpoint is not None


def test_the_right_type_is_no_error():
    assert TorchTrainer(nothing, torch_config=TorchConfig()).train_loop_config is None
