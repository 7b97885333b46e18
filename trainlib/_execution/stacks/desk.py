"""Where another process asks a training for the stacks of its ranks.

It asks the process that coordinates the training, which reaches all of its workers. They meet at a Unix socket that has no
file, and ends with the process. The kernel tells both sides who the other one is: nobody but the same user gets an answer.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import ray

from trainlib._execution.stacks.collect import collect_stacks
from trainlib._execution.stacks.report import in_full

if TYPE_CHECKING:
    from trainlib._execution.group import Member

_NOT_UP = "Its workers are not up yet."
_CLIENT_S = 5.0
_ANSWER_S = 20.0


class Peer(NamedTuple):
    """The process at the other end of a socket."""

    pid: int
    uid: int
    gid: int

    @classmethod
    def of(cls, connection: socket.socket) -> Peer:
        """Ask the kernel."""
        layout = struct.Struct("3i")
        return cls(*layout.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, layout.size)))


class StacksDesk:
    """Answers, in a thread, what the ranks of a training are doing. Where that is impossible, the training runs without."""

    def __init__(self, run_id: str) -> None:
        self._members: list[Member] = []
        self._listening: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="stacks-desk", daemon=True)
        if _is_possible():
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                listening.bind(_address(run_id))
                listening.listen()
            except OSError:  # somebody else has that address
                listening.close()
                return
            self._listening = listening
            self._thread.start()

    def watch(self, members: Sequence[Member]) -> None:
        """From now on, answer for these workers."""
        self._members = list(members)

    def close(self) -> None:
        """Answer no more. An answer that is being given is waited for: Ray is not used afterwards."""
        if self._listening is not None:
            with suppress(OSError):
                self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
            self._thread.join()
            self._listening.close()

    def _serve(self) -> None:
        assert self._listening is not None
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:  # closed
                return
            with connection, suppress(OSError):  # whoever asked has gone away
                if Peer.of(connection).uid in (os.geteuid(), 0):
                    connection.settimeout(_CLIENT_S)
                    connection.sendall(self._answer().encode())

    def _answer(self) -> str:
        try:
            return in_full(collect_stacks(self._members)) if self._members else _NOT_UP
        except ray.exceptions.RayError as error:
            return f"Ray cannot be reached, and its workers with it: {str(error).splitlines()[0]}"


def ask(run_id: str, pid: int) -> str:
    """The stacks of all ranks of a training that the process ``pid`` of this machine coordinates.

    Raises:
        ConnectionError: that process makes no attempt now, or belongs to another user.
        TimeoutError: it does not answer.
    """
    if not _is_possible():
        raise ConnectionError("only Linux has what this needs")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_S)
        connection.connect(_address(run_id))
        if Peer.of(connection).pid != pid:
            raise ConnectionError("another process answers in its place")
        pieces = []
        while piece := connection.recv(65536):
            pieces.append(piece)
    if not pieces:
        raise ConnectionError("it belongs to another user")
    return b"".join(pieces).decode(errors="replace")


def _is_possible() -> bool:
    return sys.platform == "linux"


def _address(run_id: str) -> bytes:
    return f"\0trainlib-stacks-{run_id}".encode()
