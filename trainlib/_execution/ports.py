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
        raise ValueError(f"{ports[0]} to {ports[1]} is not a range of ports. Write the lower one first")
    return ports


_Port = Annotated[int, Field(ge=1, le=65535)]
PortRange = Annotated[tuple[_Port, _Port], AfterValidator(_in_order)]
"""The first and the last port that may be used, e.g. because a firewall lets only these through."""

T = TypeVar("T")


def first_free(ports: PortRange | None, bind: Callable[[int], T]) -> T:
    """What ``bind`` returns for the first port of a range that is free; without a range it is called with 0.

    Raises:
        PortsTakenError: no port of the range is free.
    """
    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        try:
            return bind(port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or ports is None:
                raise
    raise PortsTakenError(ports, socket.gethostname())


class HeldPort:
    """A port that is reserved until it is closed, or this process ends.

    It does not listen, and lets a server bind the same port: so the port is never free between being reserved and being used. That
    may be another user's server: it is not for what tells a secret to whoever answers.
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._lock: socket.socket | None = None
        try:
            if port:  # it may still be in TIME_WAIT from an earlier connection
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("", port))
            self.number = int(self._socket.getsockname()[1])
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":  # with SO_REUSEADDR, two reservations would not exclude each other
                self._lock = socket.socket(socket.AF_UNIX)
                self._lock.bind(f"\0trainlib-port-{self.number}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the port."""
        self._socket.close()
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
