"""What of a platform is up."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from enum import StrEnum

import psutil

from trainlib._platform import lock, record
from trainlib._platform.record import Platform
from trainlib._platform.running_service import answers
from trainlib._platform.services import DEPLOYMENTS, MLFLOW, PREFECT, RAY, log_file

__all__ = ["ServiceState", "ServiceStatus", "status"]

_ANSWER_S = 2.0


class ServiceState(StrEnum):
    """What is known of a service."""

    UP = "up"
    """It answers."""
    STARTING = "starting"
    """Its platform is starting, or ending."""
    SILENT = "no answer"
    """Its process lives, and does not answer."""
    DOWN = "down"
    """Its process has ended. The platform is about to restart it."""


@dataclass(frozen=True)
class ServiceStatus:
    """A service of the platform, as it is now.

    Example:
        >>> ServiceStatus("mlflow", ServiceState.UP, "http://127.0.0.1:5000", 7).state.value
        'up'
    """

    name: str
    state: ServiceState
    address: str = ""
    pid: int | None = None
    detail: str = ""
    """Where its log is."""


def status() -> list[ServiceStatus]:
    """All services of the platform of this home. None if it is not up."""
    platform = record.running()
    if platform is not None:
        return [_of(platform, name) for name in (PREFECT, MLFLOW, RAY, DEPLOYMENTS)]
    process = lock.holder()
    return [] if process is None else [ServiceStatus("platform", ServiceState.STARTING, pid=process.pid)]


def _of(platform: Platform, name: str) -> ServiceStatus:
    address = {PREFECT: platform.prefect, MLFLOW: platform.mlflow, RAY: platform.ray}.get(name, "")
    pid = platform.pids.get(name)
    return ServiceStatus(name, _state(platform, name, pid), address, pid, str(log_file(name)))


def _state(platform: Platform, name: str, pid: int | None) -> ServiceState:
    if pid is None or not psutil.pid_exists(pid):
        return ServiceState.DOWN
    if name == DEPLOYMENTS:
        is_up = True
    elif name == RAY:
        is_up = _listens(platform.ray)
    else:
        is_up = answers({PREFECT: f"{platform.prefect_api}/health", MLFLOW: f"{platform.mlflow}/health"}[name])
    return ServiceState.UP if is_up else ServiceState.SILENT


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
    except OSError:
        return False
    return True
