"""Joining the platform of this home: whether there is one, and whether this process may use it."""

from __future__ import annotations

import os
import sys

from trainlib import __version__
from trainlib._platform import access, record
from trainlib._platform.record import Platform
from trainlib._platform.services import HEARTBEAT_S
from trainlib._storage import home
from trainlib.errors import ConnectionFailedError, PlatformMismatchError

__all__ = [
    "RESTART_S",
    "announcement",
    "is_same_environment",
    "joined",
    "no_answer",
    "prefect_settings",
    "require_same_environment",
]

# A platform restarts a service that has ended. So long, whoever joins waits for one that does not answer.
RESTART_S = 30.0


def joined() -> Platform | None:
    """The platform that this process uses wherever the environment names no other service. None if none is up.

    Raises:
        PlatformMismatchError: it is another environment's.
    """
    platform = record.running()
    if platform is not None:
        require_same_environment(platform)
    return platform


def require_same_environment(platform: Platform) -> None:
    """Make sure that a platform runs the trainlib and the packages of this process: their objects are exchanged.

    Raises:
        PlatformMismatchError: it does not.
    """
    if is_same_environment(platform):
        return
    if platform.version != __version__:
        theirs, ours = f"trainlib {platform.version}", f"this is trainlib {__version__}"
    else:
        theirs, ours = f"the environment {platform.python}", f"this is {sys.prefix}"
    raise PlatformMismatchError(
        f"the platform of {home()} runs {theirs}, and {ours}. Run `trainlib down`, then `trainlib up` from this environment, "
        "or use another home: set TRAINLIB_HOME."
    )


def is_same_environment(platform: Platform) -> bool:
    """Whether a platform runs the trainlib and the packages of this process."""
    is_same_folder = os.path.realpath(platform.python) == os.path.realpath(sys.prefix)
    return platform.version == __version__ and is_same_folder


def prefect_settings(platform: Platform) -> dict[str, str]:
    """The environment variables by which Prefect uses a platform's server."""
    return {
        "PREFECT_API_URL": platform.prefect_api,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": os.environ.get("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", str(HEARTBEAT_S)),
        **(access.prefect_client() if platform.has_auth else {}),
    }


def no_answer(service: str, address: str) -> ConnectionFailedError:
    """What is wrong if a service of a platform that is up does not answer."""
    return ConnectionFailedError(
        f"{service} of the platform of {home()} does not answer at {address}. `trainlib status` shows what is up, and "
        "`trainlib logs` why it is not."
    )


def announcement(platform: Platform, *, prefect: bool, mlflow: bool) -> str | None:
    """What a person should know before a script joins a platform. None if other services are chosen for all.

    Example:
        >>> platform = Platform("node-1:7:1234", "http://127.0.0.1:4200", "http://127.0.0.1:5000", "127.0.0.1:6379")
        >>> announcement(platform, prefect=False, mlflow=True).partition(": ")[2]
        'MLflow http://127.0.0.1:5000, Ray 127.0.0.1:6379'
    """
    uses = {
        f"Prefect {platform.prefect}": prefect,
        f"MLflow {platform.mlflow}": mlflow,
        f"Ray {platform.ray}": not os.environ.get("RAY_ADDRESS"),
    }
    names = [name for name, is_used in uses.items() if is_used]
    return f"joining the platform of {home()}: {', '.join(names)}" if names else None
