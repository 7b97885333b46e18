"""Ports on the loopback address: whether one is free, and who listens on it."""

from __future__ import annotations

import socket
import time

import psutil

from trainlib._execution.network import LOOPBACK

__all__ = ["listener", "require_free"]

_LOOK_S = 0.1
_ALL_ADDRESSES = ("0.0.0.0", "::")


def require_free(port: int, option: str, patience_s: float = 0.0) -> None:
    """Make sure that a server can listen on a port.

    Args:
        port: The port.
        option: How another one is chosen.
        patience_s: How long it may take until it is free, e.g. because what listens there is just ending.

    Raises:
        OSError: something listens there.
    """
    deadline = time.monotonic() + patience_s
    while not _is_free(port):
        if time.monotonic() >= deadline:
            raise OSError(f"port {port} is taken{_by_whom(port)}: stop what uses it, or choose another with {option}")
        time.sleep(_LOOK_S)


def listener(port: int) -> psutil.Process | None:
    """The process that listens on a port of the loopback address. None if nobody does, or if it is another user's."""
    try:
        found = [each.pid for each in psutil.net_connections("tcp") if _listens(each, port)]
        return next((psutil.Process(pid) for pid in found if pid is not None), None)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return None


def _listens(connection: psutil._common.sconn, port: int) -> bool:
    address = connection.laddr
    return (
        connection.status == psutil.CONN_LISTEN and address.port == port and address.ip in (LOOPBACK, *_ALL_ADDRESSES)
    )


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _by_whom(port: int) -> str:
    process = listener(port)
    if process is None:
        return ""
    try:
        return f" by process {process.pid} ({' '.join(process.cmdline())[:100] or process.name()})"
    except psutil.Error:
        return f" by process {process.pid}"
