"""A service that was started: whether it is up, and how it is ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from trainlib._platform import keeper, ports
from trainlib._platform.services import Service
from trainlib.errors import PlatformError

__all__ = ["RunningService", "answers", "last_lines"]

_ANSWER_S = 2.0
# What its keeper takes at most: for the service itself, for what that has started, and once more by force.
_END_S = 3 * keeper.END_S + 5.0


class RunningService:
    """A service with its keeper, which ends it together with this process, however that ends."""

    def __init__(self, service: Service) -> None:
        """Start it. Does not wait until it is up."""
        self.service = service
        service.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(service.log, "ab") as log:
            self._said_before = log.tell()
            self._keeper = subprocess.Popen(
                [sys.executable, keeper.__file__, *service.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=service.environment,
                start_new_session=True,  # Ctrl-C is for the supervisor, which ends the services in order
            )
        assert self._keeper.stdout is not None
        self.pid = int(self._keeper.stdout.readline() or self._keeper.pid)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself, and everything that it had started."""
        return self._keeper.poll() is not None

    def address(self) -> str | None:
        """Where it serves, or for one that serves nothing, what it said. None until it is up.

        Raises:
            PlatformError: it has ended, or another program serves at its address.
        """
        if self.has_ended:
            raise PlatformError(f"{self.service.name} did not start. {self.complaint()}")
        if not self.service.health:
            return self._announced()
        if not answers(self.service.health):
            return None
        self._require_own_port()
        return self.service.address

    def _announced(self) -> str | None:
        with open(self.service.log, "rb") as log:
            log.seek(self._said_before)
            said = log.read().decode(errors="replace").splitlines()
        line = next((line for line in said if line.startswith(f'{{"{self.service.name}":')), None)
        return None if line is None else str(json.loads(line)[self.service.name])

    def _require_own_port(self) -> None:
        """A program that took the port between the look at it and the start of the service would answer in its place."""
        assert self.service.port is not None
        who = ports.listener(self.service.port)
        if who is not None and self._keeper.pid not in (parent.pid for parent in who.parents()):
            raise PlatformError(
                f"port {self.service.port} was taken by process {who.pid} ({who.name()}) while {self.service.name} started"
            )

    def complaint(self) -> str:
        """What it said last, for a person who has to find out why it has ended."""
        return f"Its log is {self.service.log}, and ends with:\n{last_lines(self.service.log)}"

    def tell_to_end(self) -> None:
        """Let it end, and all that it has started. Does not wait for it."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()

    def wait(self) -> None:
        """Return when nothing of it is left."""
        try:
            self._keeper.wait(_END_S)
        except subprocess.TimeoutExpired:  # its keeper hangs: what hangs with it ends by force
            processes = psutil.Process(self._keeper.pid).children(recursive=True)
            self._keeper.kill()
            for process in processes:
                process.kill()
            self._keeper.wait()


def answers(url: str) -> bool:
    """Whether a server answers at an address, if only to say that it wants a password."""
    try:
        urllib.request.urlopen(url, timeout=_ANSWER_S).close()
    except urllib.error.HTTPError as error:
        return error.code in (401, 403)
    except OSError:
        return False
    return True


def last_lines(log: Path, count: int = 8) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""


def wait_until_up(started: list[RunningService], timeout_s: float) -> dict[str, str]:
    """The addresses of services, by name, once all of them are up.

    Raises:
        PlatformError: one has ended, or is not up in time.
    """
    deadline = time.monotonic() + timeout_s
    addresses: dict[str, str] = {}
    while missing := [each for each in started if each.service.name not in addresses]:
        for each in missing:
            if (address := each.address()) is not None:
                addresses[each.service.name] = address
        if time.monotonic() > deadline:
            names = ", ".join(each.service.name for each in missing)
            raise PlatformError(f"{names} did not start within {timeout_s:g} s. {missing[0].complaint()}")
        time.sleep(0.05)
    return addresses
