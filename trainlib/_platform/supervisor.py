"""The process that runs a platform: starts the services side by side, restarts one that ends or hangs, and ends them all.

A service that ends is restarted, because the others can go on without it for a while: a training keeps what MLflow and
Prefect did not take, and tries again on the new Ray. Ending the platform would end all trainings for one server's fault. A
service that keeps ending is given up, and the platform with it: somebody has to read its log.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from trainlib import __version__
from trainlib._platform import record
from trainlib._platform.record import Platform
from trainlib._platform.running_service import RunningService, wait_until_up
from trainlib._platform.services import DEPLOYMENTS, MLFLOW, PREFECT, RAY, Service
from trainlib._platform.watching import START_S, WatchedService
from trainlib._process import Process
from trainlib.errors import PlatformError

__all__ = ["run"]

_WATCH_S = 0.5


def run(services: Sequence[Service], *, auth: bool, show: Callable[[Platform], None]) -> None:
    """Run a platform until this process is told to end, by Ctrl-C or a signal.

    Args:
        services: What it is made of.
        auth: Whether its servers ask for a password.
        show: Is called once everything is up.

    Raises:
        PlatformError: a service did not start, or keeps ending by itself.
    """
    with _ends_on_signals():
        running: dict[str, RunningService] = {}
        try:
            for service in services:
                running[service.name] = RunningService(service)
            addresses = wait_until_up(list(running.values()), START_S)
            platform = _written(addresses, running, auth)
            show(platform)
            _watch(running, platform)
        except KeyboardInterrupt:
            pass
        finally:
            record.forget()
            _end(running)


def _watch(running: dict[str, RunningService], platform: Platform) -> None:
    """Keep all services up, for as long as that helps."""
    watched = {name: WatchedService(each, time.monotonic()) for name, each in running.items()}
    while True:
        time.sleep(_WATCH_S)
        for name, each in watched.items():
            address = each.look(time.monotonic())
            running[name] = each.running
            if address is not None:
                platform = _rewritten(platform, each.running, address)


def _written(addresses: dict[str, str], running: dict[str, RunningService], auth: bool) -> Platform:
    platform = Platform(
        str(Process.this()),
        addresses[PREFECT],
        addresses[MLFLOW],
        addresses[RAY],
        version=__version__,
        has_auth=auth,
        pids={name: each.pid for name, each in running.items()},
    )
    record.write(platform)
    return platform


def _rewritten(platform: Platform, again: RunningService, address: str) -> Platform:
    """The platform with a service that was restarted. Ray comes back at another address."""
    name = again.service.name
    ray = address if name == RAY else platform.ray
    platform = replace(platform, ray=ray, pids={**platform.pids, name: again.pid})
    record.write(platform)
    return platform


def _end(running: dict[str, RunningService]) -> None:
    """End the deployments first: their flow runs still have something to say to the others."""
    for names in ({DEPLOYMENTS}, running.keys() - {DEPLOYMENTS}):
        ending = [running[name] for name in names if name in running]
        for each in ending:
            each.tell_to_end()
        for each in ending:
            each.wait()


@contextmanager
def _ends_on_signals() -> Iterator[None]:
    """Let a signal that ends processes, also the one of a closed terminal, be Ctrl-C. A second one changes nothing."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str]) -> int:
    """Run a platform in the background: ``python -m trainlib._platform.supervisor PREFECT_PORT MLFLOW_PORT AUTH``."""
    from trainlib._platform.commands import up

    prefect_port, mlflow_port, auth = arguments
    try:
        up(prefect_port=int(prefect_port), mlflow_port=int(mlflow_port), detach=False, auth=auth == "auth")
    except (PlatformError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
