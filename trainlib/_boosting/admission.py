"""Lets in those who know a token, and nobody else."""

from __future__ import annotations

import contextlib
import hmac
import socket
import time
from multiprocessing.connection import wait

__all__ = ["admit"]


def admit(listener: socket.socket, token: bytes, count: int, timeout_s: float) -> list[socket.socket]:
    """Accept connections until so many of them have begun with the token.

    All who have connected are listened to at once: a stranger who says nothing, says something else or goes away keeps nobody waiting.

    Raises:
        TimeoutError: there are fewer when the time is over.
    """
    deadline = time.monotonic() + timeout_s
    admitted: list[socket.socket] = []
    heard: dict[socket.socket, bytes] = {}
    try:
        while len(admitted) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(
                    f"{count - len(admitted)} of {count} ranks have not connected within {timeout_s:g} s"
                )
            for each in wait([listener, *heard], timeout=left):
                assert isinstance(each, socket.socket)
                if each is listener:
                    with contextlib.suppress(ConnectionError):  # whoever it was has gone away
                        heard[listener.accept()[0]] = b""
                    continue
                part = _received(each, len(token) - len(heard[each]))
                heard[each] += part
                if part and len(heard[each]) < len(token):
                    continue
                if hmac.compare_digest(heard.pop(each), token):
                    admitted.append(each)
                else:
                    each.close()
    except BaseException:
        for each in admitted:
            each.close()
        raise
    finally:
        for each in heard:
            each.close()
    return admitted


def _received(connection: socket.socket, size: int) -> bytes:
    """What has come of so many bytes. Nothing if the other side has gone away."""
    try:
        return connection.recv(size)
    except OSError:
        return b""
