"""What the exit codes of the command line mean, and which error has which."""

from __future__ import annotations

import sys
from enum import IntEnum

from trainlib.errors import (
    CapacityError,
    ConnectionFailedError,
    FormatError,
    PlatformMismatchError,
    RunInUseError,
    RunNotReachableError,
    TrainlibError,
)

__all__ = ["ExitCode", "RefusedError", "code_of"]


class ExitCode(IntEnum):
    """The exit codes of all commands. Scripts rely on them: a code that has been released keeps its meaning."""

    DONE = 0
    """It is done."""
    FAILED = 1
    """It was tried, and failed: a training failed, or `doctor` has found something broken."""
    USAGE = 2
    """An option or an argument is wrong. Nothing was done."""
    NOT_FOUND = 3
    """There is no such run, checkpoint, model, file or platform."""
    REFUSED = 4
    """It exists, but this cannot be done with it now: another process uses it, it does not run, or it has changed."""
    UNREACHABLE = 5
    """Prefect, MLflow or Ray does not answer, or Ray has no room."""
    INTERRUPTED = 130
    """Somebody pressed Ctrl-C."""


class RefusedError(TrainlibError, ValueError):
    """A command does not do what it was asked for, and says how to insist. It never leaves the command line."""


_REFUSED = (
    RefusedError,
    PlatformMismatchError,
    RunInUseError,
    RunNotReachableError,
    FormatError,
    FileExistsError,
    PermissionError,
)
_UNREACHABLE = (ConnectionFailedError, CapacityError, ConnectionError)


def code_of(error: BaseException) -> ExitCode | None:
    """The exit code for an error that a person can do something about. None for a defect, which needs its traceback.

    Example:
        >>> from trainlib.errors import RunNotFoundError
        >>> code_of(RunNotFoundError("no such run")), code_of(KeyError("x"))
        (<ExitCode.NOT_FOUND: 3>, None)
    """
    if isinstance(error, _REFUSED):
        return ExitCode.REFUSED
    if isinstance(error, _UNREACHABLE) or _is_from(error, "httpx", "HTTPError"):
        return ExitCode.UNREACHABLE
    if isinstance(error, FileNotFoundError) or (isinstance(error, TrainlibError) and _is_lookup(error)):
        return ExitCode.NOT_FOUND
    if isinstance(error, (TrainlibError, ImportError, ValueError, OSError)):
        return ExitCode.FAILED
    if _is_from(error, "mlflow.exceptions", "MlflowException") or _is_from(
        error, "prefect.exceptions", "PrefectException"
    ):
        return ExitCode.FAILED
    return None


def _is_lookup(error: TrainlibError) -> bool:
    return isinstance(error, LookupError) and not isinstance(error, KeyError)


def _is_from(error: BaseException, module: str, name: str) -> bool:
    """Whether an error is of a class whose module may not even be imported. Then it is not."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(error, getattr(loaded, name))
