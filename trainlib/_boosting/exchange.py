"""Exchanges bytes between the ranks of a gang, for what the libraries' own networks do not offer.

LightGBM's has nothing for bytes of Python's, and XGBoost's would unpickle them, whoever has sent them. The other ranks connect to rank 0,
which knows them by a token; it gets what each of them has, and sends all of it to everyone. Nothing is unpickled.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._boosting.admission import admit
from trainlib._execution.network import listen
from trainlib._execution.waiting import gather

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

__all__ = ["MOST_BYTES", "Exchange", "ExchangeBytes", "connect", "exchange", "exchange_json", "leave"]

MOST_BYTES = 2**29
"""What all ranks together may send at once: each of them gets it all."""
ExchangeBytes = Callable[[bytes], list[bytes]]
"""Sends bytes to all ranks, and returns those of all ranks in their order."""
_HEADER = struct.Struct("<IQ")
"""A rank, and how many bytes follow."""


class Exchange:
    """A rank's connections to the others. Rank 0 is connected to all, and the others to rank 0."""

    def __init__(self) -> None:
        self._listener: socket.socket | None = None
        """On rank 0, until all others are there."""
        self._peers: list[socket.socket] = []
        """On rank 0, the other ranks; on the others, rank 0."""

    def open(self, address: str, timeout_s: float) -> int:
        """Rank 0: listen. Returns the port."""
        self.leave()
        self._listener = listen(address)
        self._listener.settimeout(timeout_s)
        return int(self._listener.getsockname()[1])

    def join(self, address: str, port: int, token: str, timeout_s: float) -> None:
        """Other ranks: connect to rank 0."""
        self.leave()
        self._keep(socket.create_connection((address, port), timeout=timeout_s), timeout_s)
        self._peers[0].sendall(token.encode())

    def let_in(self, others: int, token: str, timeout_s: float) -> None:
        """Rank 0: accept the other ranks, which have connected already, and nobody else from then on."""
        assert self._listener is not None, "open() comes first"
        for connection in admit(self._listener, token.encode(), others, timeout_s):
            self._keep(connection, timeout_s)
        self._listener.close()
        self._listener = None

    def send_and_receive(self, rank: int, mine: bytes) -> list[bytes]:
        """What all ranks have sent, in their order. They have to call this equally often.

        Args:
            rank: This one.
            mine: What it sends.

        Raises:
            ConnectionError: another rank has gone away.
            TimeoutError: another rank sends nothing.
        """
        try:
            if rank:
                _send(self._peers[0], [(rank, mine)])
                count, _ = _received(self._peers[0])
                return [_received(self._peers[0])[1] for _ in range(count)]
            sent = sorted([(rank, mine), *(_received(peer) for peer in self._peers)])
            for peer in self._peers:
                _send(peer, [(len(sent), b""), *sent])
            return [each for _, each in sent]
        except TimeoutError as error:
            waited_s = self._peers[0].gettimeout() or 0.0
            raise TimeoutError(
                f"rank {rank} has waited {waited_s:g} s for the other ranks, which may have more rows to read. Spread the rows more evenly, "
                "or give them more time: XGBoostConfig(timeout_s=...), LightGBMConfig(timeout_s=...)"
            ) from error

    def leave(self) -> None:
        """Close all connections."""
        for each in (*self._peers, *([self._listener] if self._listener is not None else [])):
            each.close()
        self._peers.clear()
        self._listener = None

    def _keep(self, connection: socket.socket, timeout_s: float) -> None:
        connection.settimeout(timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers.append(connection)


_here = Exchange()
"""This worker's."""


def connect(worker_group: WorkerGroup, addresses: Sequence[str], timeout_s: float) -> None:
    """Let the ranks of a gang exchange bytes.

    Args:
        worker_group: The gang.
        addresses: Those of its ranks.
        timeout_s: How long a rank may take to answer.
    """
    others = range(1, len(worker_group))
    token = secrets.token_hex(16)
    port = worker_group.execute_single(0, _open, addresses[0], timeout_s)
    joining = (addresses[0], port, token, timeout_s)
    gather([worker_group.execute_single_async(rank, _join, *joining) for rank in others], timeout=timeout_s)
    worker_group.execute_single(0, _let_in, len(others), token, timeout_s)


def exchange(mine: bytes) -> list[bytes]:
    """See :meth:`Exchange.send_and_receive`. A rank that is alone gets what it sends."""
    return [mine] if session.get_world_size() == 1 else _here.send_and_receive(session.get_world_rank(), mine)


def exchange_json(mine: Any, by: ExchangeBytes = exchange) -> list[Any]:
    """The same for what JSON can say."""
    return [json.loads(each) for each in by(json.dumps(mine).encode())]


def leave() -> None:
    """See :meth:`Exchange.leave`."""
    _here.leave()


def _open(address: str, timeout_s: float) -> int:
    return _here.open(address, timeout_s)


def _join(address: str, port: int, token: str, timeout_s: float) -> None:
    _here.join(address, port, token, timeout_s)


def _let_in(others: int, token: str, timeout_s: float) -> None:
    _here.let_in(others, token, timeout_s)


def _send(connection: socket.socket, parts: Sequence[tuple[int, bytes]]) -> None:
    for rank, part in parts:
        # Few bytes go together with their header: a packet of its own may wait for the one before it to be acknowledged.
        head = _HEADER.pack(rank, len(part))
        if len(part) < 2**16:
            connection.sendall(head + part)
        else:
            connection.sendall(head)
            connection.sendall(part)


def _received(connection: socket.socket) -> tuple[int, bytes]:
    rank, size = _HEADER.unpack(_read(connection, _HEADER.size))
    if size > MOST_BYTES:
        raise ConnectionError(f"rank {rank} announces {size} bytes, more than the {MOST_BYTES} that it may send")
    return rank, bytes(_read(connection, size))


def _read(connection: socket.socket, size: int) -> Any:
    parts = bytearray(size)
    view, filled = memoryview(parts), 0
    while filled < size:
        count = connection.recv_into(view[filled:])
        if not count:
            raise ConnectionError("another rank has left the training")
        filled += count
    return parts
