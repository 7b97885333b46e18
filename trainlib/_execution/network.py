"""On which address the workers of a gang listen for each other: never on more than they have to."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Collection, Iterator, Sequence

import psutil

from trainlib._execution.packet_filter import hear_only

__all__ = ["LOOPBACK", "addresses_of", "interface_with", "listen", "listening_sockets", "narrow_listeners"]

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


def listening_sockets() -> frozenset[int]:
    """Which sockets of this process listen, by inode: the numbers of files are used again."""
    return frozenset(inode for inode, found in _sockets() if _listens(found))


def narrow_listeners(address: str, *, but: Collection[int]) -> None:
    """Let the sockets of this process that listen on all addresses hear only what is sent to this one, or to loopback.

    For libraries that cannot be told where to listen. They may well call themselves through loopback, as XGBoost does at its end.

    Args:
        address: The address.
        but: What is left alone: those of :func:`listening_sockets` before the library opened its own. Ray's may be among them,
            which other hosts have to reach.
    """
    for inode, found in _sockets():
        if inode not in but and _listens(found) and found.getsockname()[0] in ("0.0.0.0", "::"):
            hear_only(found, (address, LOOPBACK, "::1"))


def _listens(found: socket.socket) -> bool:
    is_inet = found.family in (socket.AF_INET, socket.AF_INET6)
    return is_inet and bool(found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """The sockets of this process, by inode. Each is open until the next is asked for."""
    for number in _open_numbers():
        try:
            copy = os.dup(number)
        except OSError:  # closed meanwhile
            continue
        about = os.fstat(copy)
        if not stat.S_ISSOCK(about.st_mode):
            os.close(copy)
            continue
        with socket.socket(fileno=copy) as found:
            yield about.st_ino, found


def _open_numbers() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # another system
        return []
