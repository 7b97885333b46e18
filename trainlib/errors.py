"""Every exception a user of trainlib can meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainlib._secrets import masked_uri

if TYPE_CHECKING:
    from trainlib._execution.causes import Cause
    from trainlib._execution.origin import Origin
    from trainlib.result import Result

__all__ = [
    "CapacityError",
    "CheckpointNotFoundError",
    "CheckpointNotSavedError",
    "CheckpointsNeededError",
    "CodeTooLargeError",
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
    "ModelNotFoundError",
    "NoEarlierVersionError",
    "OutOfStepError",
    "PlatformError",
    "PlatformMismatchError",
    "PortsTakenError",
    "RayLostError",
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
    "UntrustedCheckpointError",
    "WorkerVersionError",
]


class TrainlibError(Exception):
    """The base class of all errors that trainlib raises. Passwords in URIs are left out of their messages.

    Example:
        >>> str(TrainlibError("nothing is at ftp://ada:pw@host/people.csv"))
        'nothing is at ftp://ada:********@host/people.csv'
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(masked_uri(each) if isinstance(each, str) else each for each in args))


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
        retry_after_s: how many seconds that attempt waits: a full disk, or a server that is away, gets time to recover.
        stacks_file: if a rank hung, or a collective timed out, the file with the stacks of all threads of all ranks.
        result: once no other attempt is made, what has come of the training: its last metrics, its newest checkpoint, its
            links, and its ``error``, which is what the training function raised, or this error if it raised nothing.
        raised_at: what the training function raised, and where.

    Example::

        try:
            result = trainer.fit()
        except TrainingFailedError as failed:
            result = failed.result
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
        self.retry_after_s = 0.0
        self.stacks_file: str | None = None
        self.result: Result | None = None
        self.raised_at: Origin | None = None

    @property
    def raised(self) -> BaseException:
        """What the training function raised. If it raised nothing, e.g. because its worker died, this error."""
        return self.__cause__ if self.rank is not None and self.__cause__ is not None else self

    def __reduce__(self) -> tuple[object, ...]:
        from trainlib._execution.carried_errors import portable

        # What may lead back to this error, as its result does, is in the state: that is pickled after the error is known.
        cause = portable(self.__cause__) if self.__cause__ is not None else b""
        result = self.result._without_lost_checkpoint() if self.result is not None else None
        return (
            _rebuild_training_failed,
            (self.args[0], self.cause),
            {**self.__dict__, "result": result, "__cause__": cause},
        )

    def __setstate__(self, state: dict[str, Any] | None) -> None:
        from trainlib._execution.carried_errors import revived

        cause = (state := dict(state or {})).pop("__cause__", b"")
        self.__dict__.update(state)
        self.__cause__ = revived(cause)
        if self.result is not None and self.result.error is not None and self.result.error is not self:
            self.result.error = self.raised  # one exception, as before


def raised_in(error: BaseException | None) -> BaseException | None:
    """What the training function raised, if ``error`` says that it raised something; else the error itself."""
    return error.raised if isinstance(error, TrainingFailedError) else error


def _rebuild_training_failed(message: str, cause: Cause) -> TrainingFailedError:
    return TrainingFailedError(message, cause=cause)


class TrainingCancelledError(TrainlibError):
    """Somebody has cancelled the flow run of a training or sweep in Prefect, or a flow run of yours that it was called in.

    The latter stays ``Cancelling`` for some minutes, unless your flow catches this error and returns
    ``prefect.states.Cancelled()``.
    """


class CapacityError(TrainlibError):
    """The cluster cannot hold the workers that were asked for."""


class CodeTooLargeError(TrainlibError, ValueError):
    """The folder of the script is too large to be sent to a cluster."""


class ConnectionFailedError(TrainlibError):
    """A Ray cluster, an MLflow server or a Prefect server did not answer."""


class PlatformError(TrainlibError):
    """The platform of this home did not start, or a service of it keeps ending."""


class PlatformMismatchError(ConnectionFailedError):
    """The platform of this home is that of another environment, or of another version of trainlib."""


class WorkerVersionError(TrainlibError):
    """A node has another version of trainlib than this process."""


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


class ModelNotFoundError(TrainlibError, LookupError):
    """The registry has no such model, version or alias."""


class NoEarlierVersionError(ModelNotFoundError):
    """An alias cannot be moved back: no version is known that had it before."""


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
    """A reported metric is a tensor or a model, or is not a number where one is needed."""


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
