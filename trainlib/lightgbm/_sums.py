"""Sums of numbers over the ranks of a gang. LightGBM measures on each rank's own rows, and has no sum to offer.

Rank 0 has a desk: the others connect to it, send their numbers, and get the sums.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

from trainlib import session
from trainlib._execution.network import listen
from trainlib.lightgbm._door import admit

__all__ = ["add_up", "find_desk", "leave", "open_desk"]

_listener: socket.socket | None = None
"""On rank 0 only."""
_peers: list[socket.socket] = []
"""On rank 0, the other ranks; on the others, rank 0."""
_missing = 0
"""How many ranks have not come to the desk yet."""
_token = b""


def open_desk(address: str, ranks: int, token: str, timeout_s: float) -> int:
    """Rank 0: let the others connect. Returns the port."""
    global _listener, _missing, _token
    leave()
    _listener = listen(address)
    _listener.settimeout(timeout_s)
    _missing, _token = ranks - 1, token.encode()
    return int(_listener.getsockname()[1])


def find_desk(address: str, port: int, token: str, timeout_s: float) -> None:
    """All ranks: where the desk is. Rank 0, which has it, does nothing."""
    if _listener is not None:
        return
    leave()
    connection = socket.create_connection((address, port), timeout=timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(token.encode())
    _peers.append(connection)


def add_up(numbers: Sequence[float]) -> list[float]:
    """The sums of these numbers over all ranks, which have to call this equally often.

    Raises:
        ConnectionError: another rank has gone away.
        TimeoutError: another rank does not come.
    """
    if session.get_world_size() == 1:
        return list(numbers)
    _let_in()
    packed = struct.pack(f"{len(numbers)}d", *numbers)
    if _listener is None:
        _peers[0].sendall(packed)
        return list(struct.unpack(f"{len(numbers)}d", _received(_peers[0], len(packed))))
    total = list(numbers)
    for peer in _peers:
        theirs = struct.unpack(f"{len(numbers)}d", _received(peer, len(packed)))
        total = [ours + more for ours, more in zip(total, theirs, strict=True)]
    for peer in _peers:
        peer.sendall(struct.pack(f"{len(total)}d", *total))
    return total


def leave() -> None:
    """Close all connections."""
    global _listener, _missing
    for each in (*_peers, *([_listener] if _listener is not None else [])):
        each.close()
    _peers.clear()
    _listener, _missing = None, 0


def _let_in() -> None:
    """Rank 0: accept the others, who have connected already."""
    global _missing
    if not _missing or _listener is None:
        return
    timeout_s = _listener.gettimeout() or 0.0
    for connection in admit(_listener, _token, _missing, timeout_s):
        connection.settimeout(timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _peers.append(connection)
    _missing = 0


def _received(connection: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("another rank has left the training")
        parts += part
    return parts
