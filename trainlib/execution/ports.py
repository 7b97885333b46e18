"""Ports that are free, and stay so until they are used."""

from __future__ import annotations

import socket
from typing import Annotated

from pydantic import AfterValidator, Field

from trainlib.errors import PortsTakenError

__all__ = ["PortRange", "hold"]


def _in_order(ports: tuple[int, int]) -> tuple[int, int]:
    if ports[0] > ports[1]:
        raise ValueError(f"{ports[0]} to {ports[1]} is no range of ports: write the lower one first")
    return ports


_Port = Annotated[int, Field(ge=1, le=65535)]
PortRange = Annotated[tuple[_Port, _Port], AfterValidator(_in_order)]
"""The first and the last port that may be used, e.g. because a firewall lets only these through."""


def hold(host: str, ports: PortRange | None = None) -> socket.socket:
    """A socket bound to a free port, which nobody else can then be given.

    It does not listen, and lets a server of this user bind the same port beside it: so the port goes from
    being reserved to being used without being free in between.

    Raises:
        PortsTakenError: no port of the range is free.
    """
    for port in range(ports[0], ports[1] + 1) if ports else (0,):
        held = socket.socket()
        try:
            held.bind((host, port))
        except OSError:
            held.close()
            continue
        # Only now: with it, bind would accept a port that somebody else holds in the same way.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return held
    raise PortsTakenError(ports, socket.gethostname())
