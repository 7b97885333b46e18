"""Ports that are free, and stay so until they are used."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, Field

from trainlib.errors import PortsTakenError

__all__ = ["HeldPort", "PortRange", "first_free"]


def _in_order(ports: tuple[int, int]) -> tuple[int, int]:
    if ports[0] > ports[1]:
        raise ValueError(f"{ports[0]} to {ports[1]} is no range of ports: write the lower one first")
    return ports


_Port = Annotated[int, Field(ge=1, le=65535)]
PortRange = Annotated[tuple[_Port, _Port], AfterValidator(_in_order)]
"""The first and the last port that may be used, e.g. because a firewall lets only these through."""

T = TypeVar("T")


def first_free(ports: PortRange | None, take: Callable[[int], T]) -> T:
    """What ``take`` gives for the first port that it finds free; without a range, it is given 0.

    Raises:
        PortsTakenError: no port of the range is free.
    """
    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        try:
            return take(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or ports is None:
                raise
    raise PortsTakenError(ports, socket.gethostname())


class HeldPort:
    """A port that nobody else is given, until this process ends or lets it go.

    It does not listen, and lets a server of this user bind the same port beside it: so the port goes from
    being reserved to being used without being free in between.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._lock: socket.socket | None = None
        try:
            if port:  # also one that still waits for the last packets of a connection that is over
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("", port))
            self.number = int(self._socket.getsockname()[1])
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":  # two that are held like this would not mind each other
                self._lock = socket.socket(socket.AF_UNIX)
                self._lock.bind(f"\0trainlib-port-{self.number}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let it go."""
        self._socket.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
