"""``trainlib up``, ``down``, ``status`` and ``logs``, as functions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from trainlib._home import require_home
from trainlib._platform import lock, ports, record, screen
from trainlib._platform.running_service import last_lines
from trainlib._platform.services import log_file, services
from trainlib._platform.status import ServiceState, ServiceStatus, status
from trainlib._platform.supervisor import run
from trainlib._platform.watching import START_S
from trainlib._process import Process
from trainlib._storage import home
from trainlib.errors import PlatformError

__all__ = ["ServiceState", "ServiceStatus", "down", "log_files", "status", "up"]

_LOOK_S = 0.1
# What a killed platform leaves ends within so long.
_LEFTOVERS_S = 15.0
_DOWN_S = 60.0
_LARGEST_LOG = 10 * 2**20


def up(*, prefect_port: int, mlflow_port: int, detach: bool, auth: bool) -> None:
    """Start the platform of this home, and run it until Ctrl-C. If it is up already, say where.

    Args:
        prefect_port: Where Prefect serves, on 127.0.0.1.
        mlflow_port: Where MLflow serves.
        detach: Run it in the background, and return when it is up.
        auth: Let both servers ask for a password.

    Raises:
        OSError: a port is taken.
        PlatformError: a service did not start, or keeps ending by itself.
    """
    require_home(home())
    console = Console(highlight=False)
    if (platform := record.running()) is not None:
        if auth and not platform.has_auth:
            raise PlatformError(
                f"the platform of {home()} is up, and asks for no password. Run `trainlib down`, then `trainlib up --auth`."
            )
        screen.show(console, platform, "is up already")
    elif detach:
        _start_in_background(console, prefect_port, mlflow_port, auth)
    else:
        _run_here(console, prefect_port, mlflow_port, auth)


def down() -> bool:
    """End the platform of this home, with everything that it has started. False if it was not up.

    Raises:
        PlatformError: it did not end.
    """
    process = lock.holder()
    if process is None:
        return False
    os.kill(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + _DOWN_S
    while not process.is_gone:
        if time.monotonic() > deadline:
            raise PlatformError(
                f"process {process.pid} runs the platform, and did not end within {_DOWN_S:g} s. `kill -9 {process.pid}` ends "
                "it, and its services after it."
            )
        time.sleep(_LOOK_S)
    return True


def log_files() -> dict[str, Path]:
    """The logs of all services that have one, by name. ``platform`` is what ``up --detach`` has printed."""
    return {file.stem: file for file in sorted(log_file("platform").parent.glob("*.log"))}


def _run_here(console: Console, prefect_port: int, mlflow_port: int, auth: bool) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with lock.only_one() as is_ours:
            if is_ours:
                _require_ports(prefect_port, mlflow_port)
                _keep_logs_short()
                screen.announce(console)
                run(
                    services(prefect_port, mlflow_port, auth=auth),
                    auth=auth,
                    show=lambda platform: screen.show(console, platform, "is up", "Ctrl-C ends it."),
                )
                return
        if (platform := record.running()) is not None:
            screen.show(console, platform, "is up already")
            return
        time.sleep(_LOOK_S)  # another one is starting or ending
    raise PlatformError(
        f"another `trainlib up` holds {home()}, but its platform was not up within {START_S:g} s. `trainlib down` ends it."
    )


def _require_ports(prefect_port: int, mlflow_port: int) -> None:
    if prefect_port == mlflow_port:
        raise OSError(f"Prefect and MLflow cannot both listen on port {mlflow_port}: choose another with --mlflow-port")
    patience_s = _LEFTOVERS_S if record.last() is not None else 0.0  # a platform was killed, and maybe just now
    for port, option in ((prefect_port, "--prefect-port"), (mlflow_port, "--mlflow-port")):
        ports.require_free(port, option, patience_s)


def _start_in_background(console: Console, prefect_port: int, mlflow_port: int, auth: bool) -> None:
    screen.announce(console)
    log = log_file("platform")
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "trainlib._platform.supervisor"),
                *(str(prefect_port), str(mlflow_port), "auth" if auth else "open"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # it outlives this terminal
        )
    try:
        while (platform := record.running()) is None:
            if process.poll() is not None:
                raise PlatformError(f"the platform did not start:\n{last_lines(log, 20)}")
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        process.terminate()
        raise
    is_own = Process.parse(platform.process).pid == process.pid
    screen.show(console, platform, "is up" if is_own else "is up already", "`trainlib down` ends it.")


def _keep_logs_short() -> None:
    for file in log_files().values():
        if file.stat().st_size > _LARGEST_LOG:
            os.replace(file, file.with_suffix(".old"))
