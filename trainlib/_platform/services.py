"""The services of a platform: how each is started, and how one knows that it is up."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import trainlib
from trainlib._execution.network import LOOPBACK
from trainlib._platform import access
from trainlib._platform.guard import allowed_hosts, allowed_origins
from trainlib._platform.lock import folder

__all__ = ["DEPLOYMENTS", "HEARTBEAT_S", "MLFLOW", "PREFECT", "RAY", "Service", "log_file", "services"]

PREFECT, MLFLOW, RAY, DEPLOYMENTS = "prefect", "mlflow", "ray", "deployments"

# How often a flow run tells that it lives: as often as Prefect allows. A run that is silent for long has crashed.
HEARTBEAT_S = 30

# What the user may have set for scripts. The platform's own services are each other's.
_USERS_SERVERS = ("PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_API_AUTH_STRING", "MLFLOW_TRACKING_URI", "RAY_ADDRESS")


@dataclass(frozen=True)
class Service:
    """A service, and the command that runs it."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    """It may contain the password."""
    address: str = ""
    """Where it serves. Empty if only the service itself knows."""
    health: str = ""
    """What it answers at once it is up. Without one, it prints a line of JSON then."""

    @property
    def log(self) -> Path:
        """What it prints."""
        return log_file(self.name)

    @property
    def port(self) -> int | None:
        """The port of its address."""
        return int(self.address.rpartition(":")[2]) if self.address else None


def log_file(name: str) -> Path:
    """The log of a service."""
    return folder() / "logs" / f"{name}.log"


def services(prefect_port: int, mlflow_port: int, *, auth: bool) -> list[Service]:
    """All services of a platform, in the order in which people think of them.

    Raises:
        PlatformError: there cannot be a password.
    """
    prefect, mlflow = f"http://{LOOPBACK}:{prefect_port}", f"http://{LOOPBACK}:{mlflow_port}"
    # The password is made once MLflow's users are known to have none, or that one.
    mlflow_users = access.mlflow_settings() if auth else {}
    shared = {name: value for name, value in os.environ.items() if name not in _USERS_SERVERS}
    return [
        Service(
            PREFECT,
            # As a file: `-m` would import all of trainlib.flows, and Prefect with it, before its settings are made.
            (
                sys.executable,
                "-P",
                str(Path(trainlib.__file__).parent / "flows" / "_serve.py"),
                str(prefect_port),
                "--alone",
            ),
            {**shared, **_prefect_settings(prefect_port, prefect), **(access.prefect_server() if auth else {})},
            prefect,
            f"{prefect}/api/health",
        ),
        Service(
            MLFLOW,
            _module("trainlib._platform.mlflow_server", str(mlflow_port), *(["--auth"] if auth else [])),
            {**shared, **_mlflow_settings(mlflow_port), **mlflow_users},
            mlflow,
            f"{mlflow}/health",
        ),
        Service(RAY, _module("trainlib._execution.head"), shared),
        Service(
            DEPLOYMENTS,
            _module("trainlib.deployments.serve"),
            {
                **shared,
                "PREFECT_API_URL": f"{prefect}/api",
                "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_S),
                **(access.prefect_client() if auth else {}),
            },
        ),
    ]


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", name, *arguments)


def _prefect_settings(port: int, address: str) -> dict[str, str]:
    return {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        # Else its pages ask the default port.
        "PREFECT_SERVER_UI_API_URL": os.environ.get("PREFECT_SERVER_UI_API_URL", f"{address}/api"),
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": ",".join(allowed_origins(port)),
    }


def _mlflow_settings(port: int) -> dict[str, str]:
    return {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # seven processes that outlive the server
        # By default it also answers to 10.*, which is any name that begins like this.
        "MLFLOW_SERVER_ALLOWED_HOSTS": ",".join(allowed_hosts(port)),
        "MLFLOW_SERVER_CORS_ALLOWED_ORIGINS": ",".join(allowed_origins(port)),
    }
