"""On which address the workers of a gang listen for each other: never on more than they have to."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import psutil

__all__ = ["LOOPBACK", "addresses_of", "interface_with", "listen"]

LOOPBACK = "127.0.0.1"


def addresses_of(nodes: Sequence[str]) -> list[str]:
    """The address that each worker of a gang listens on, given its node's. On one host, the others need no more than loopback.

    Example:
        >>> addresses_of(["10.0.0.7", "10.0.0.7"]), addresses_of(["10.0.0.7", "10.0.0.8"])
        (['127.0.0.1', '127.0.0.1'], ['10.0.0.7', '10.0.0.8'])
    """
    return [LOOPBACK] * len(nodes) if len(set(nodes)) == 1 else list(nodes)


def listen(address: str) -> socket.socket:
    """A socket that listens on this address only, on a port that the system picks."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, 0), family=family, backlog=socket.SOMAXCONN)


def interface_with(address: str) -> str | None:
    """The network interface of this host that has an address."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(each.address == address for each in addresses):
            return name
    return None
