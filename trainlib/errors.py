"""Every exception a user of trainlib can meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlib._execution.causes import Cause

__all__ = [
    "CapacityError",
    "CheckpointNotFoundError",
    "CheckpointNotSavedError",
    "CheckpointsNeededError",
    "ConnectionFailedError",
    "DataError",
    "DataNotFoundError",
    "FormatError",
    "HorovodBuildError",
    "HorovodUnavailableError",
    "InvalidArgumentError",
    "KerasVersionError",
    "MetricError",
    "MetricNotReportedError",
    "OutOfStepError",
    "PortsTakenError",
    "RunInUseError",
    "RunLostError",
    "RunNotFoundError",
    "RunNotReachableError",
    "ScoreNotReportedError",
    "SessionUnavailableError",
    "StalledError",
    "SweepFailedError",
    "TooFewWorkersError",
    "TrainingCancelledError",
    "TrainingFailedError",
    "TrainlibError",
]


class TrainlibError(Exception):
    """The base class of all errors that trainlib raises."""


class InvalidArgumentError(TrainlibError, TypeError, ValueError):
    """An argument has the wrong type, or cannot be used as it is.

    It is a ``TypeError``, which is what Python raises for a wrong type, and a ``ValueError``, which is what Ray raises, so
    that code written for either catches it.

    Example:
        >>> from trainlib import Checkpoint
        >>> try:
        ...     Checkpoint.from_dict([1, 2])
        ... except ValueError as error:
        ...     print(error)
        Checkpoint.from_dict() takes a dict, got list
    """


class TrainingFailedError(TrainlibError):
    """A training attempt failed. ``__cause__`` is the exception that the failing rank raised, if it raised one.

    Attributes:
        cause: why it failed, a :class:`trainlib.execution.Cause`.
        rank: the rank that failed, if one did.
        node: the address of that rank's node.
        attempt: the number of the attempt, from 1.
        retry: whether the failure budget allows another attempt.
        stacks_file: if a rank hung, or a collective timed out, the file with the stacks of all threads of all ranks.
    """

    def __init__(
        self,
        message: str,
        *,
        cause: Cause,
        rank: int | None = None,
        node: str | None = None,
        attempt: int = 1,
        retry: bool = False,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.rank = rank
        self.node = node
        self.attempt = attempt
        self.retry = retry
        self.stacks_file: str | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_training_failed, (self.args[0], self.__dict__.copy(), self.__cause__))


def _rebuild_training_failed(
    message: str, state: dict[str, object], cause: BaseException | None
) -> TrainingFailedError:
    error = TrainingFailedError(message, cause=state["cause"])  # type: ignore[arg-type]
    error.__dict__.update(state)
    error.__cause__ = cause
    return error


class TrainingCancelledError(TrainlibError):
    """Somebody has cancelled the flow run of a training or sweep in Prefect."""


class CapacityError(TrainlibError):
    """The cluster cannot hold the workers that were asked for."""


class ConnectionFailedError(TrainlibError):
    """A Ray cluster, an MLflow server or a Prefect server did not answer."""


class RayLostError(ConnectionFailedError):
    """The Ray that a training ran on is gone. The next attempt is made on another one."""


class CheckpointNotFoundError(TrainlibError, FileNotFoundError):
    """There is no checkpoint at the given location."""


class UntrustedCheckpointError(TrainlibError, ValueError):
    """Loading the checkpoint could run code of somebody who is not known to be trusted."""


class CheckpointNotSavedError(TrainlibError):
    """A checkpoint was reported, but the store did not accept it, and no newer one was saved."""


class DataError(TrainlibError, ValueError):
    """Data cannot be read, or does not fit the training. The message names the file, row or column."""


class DataNotFoundError(DataError, FileNotFoundError):
    """There is no data at the given location."""


class FormatError(TrainlibError):
    """Something was written by another version of trainlib, in a way that this one cannot read."""


class RunNotFoundError(TrainlibError, LookupError):
    """The registry has no training with that name or id."""


class RunNotReachableError(TrainlibError):
    """The training does not run, or not where it can be asked what it is doing."""


class RunInUseError(TrainlibError):
    """Another process is running a training with that name."""


class RunLostError(RunInUseError):
    """Another process has taken over the run, because this one had not been heard of for too long."""


class HorovodBuildError(TrainlibError):
    """Horovod could not be built for the frameworks of this environment."""


class HorovodUnavailableError(TrainlibError, ImportError):
    """Horovod is missing, or was built for other versions of the frameworks."""


class KerasVersionError(TrainlibError):
    """A Keras 3 model or optimizer was used where only Keras 2 works."""


class MetricError(InvalidArgumentError):
    """A reported metric is not a number."""


class ScoreNotReportedError(TrainlibError, KeyError):
    """A checkpoint was reported without the metric that ``checkpoint_score_attribute`` names."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the text in quotes


class MetricNotReportedError(TrainlibError, KeyError):
    """A trial did not report the metric that the sweep optimises."""

    def __str__(self) -> str:
        return str(self.args[0])


class CheckpointsNeededError(TrainlibError):
    """The scheduler resumes trials from checkpoints, but the training function saves none."""


class SweepFailedError(TrainlibError):
    """A trial failed in a sweep with ``fail_fast``. ``__cause__`` is its error.

    Attributes:
        results: the results so far, a :class:`trainlib.tune.ResultGrid`.
    """

    def __init__(self, message: str, results: object = None) -> None:
        super().__init__(message, results)
        self.results = results

    def __str__(self) -> str:
        return str(self.args[0])


class OutOfStepError(TrainlibError):
    """The ranks did not call ``report`` equally often."""


class PortsTakenError(TrainlibError, OSError):
    """All ports of a range are taken on a node."""

    def __init__(self, ports: object, host: str) -> None:
        super().__init__(ports, host)
        self.ports = ports
        self.host = host

    def __str__(self) -> str:
        return f"no port of {self.ports} is free on {self.host}: widen port_range, or leave it out to use any free port"


class StalledError(TrainlibError):
    """A rank waited too long for another one in a collective."""


class TooFewWorkersError(TrainlibError, ValueError):
    """A strategy that averages across workers was used with one worker."""


class SessionUnavailableError(TrainlibError, RuntimeError):
    """A function that works only inside a training function was called outside of one."""
