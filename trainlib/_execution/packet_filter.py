"""Lets a socket hear only what is sent to some addresses, as if it had been bound to these.

For sockets of libraries that listen on all addresses, and cannot be told where. Linux takes a small program for a socket that decides
packet by packet, also from users who are not root, and also once the socket listens.
"""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct
import sys
from collections.abc import Iterable

__all__ = ["hear_only"]

_SO_ATTACH_FILTER = 26
_IP_HEADER = 0xFFF00000
"""Where a program finds the packet's IP header: it is 1 MiB before zero."""
_VERSION_OF = {4: (16, 4), 6: (24, 16)}
"""Where in the header the address is that a packet is sent to, and how long it is, by the version of IP."""
_LOAD_BYTE, _LOAD_WORD, _SHIFT_RIGHT, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x20, 0x74, 0x15, 0x06
_WHOLE, _NOTHING = 0xFFFFFFFF, 0

Instruction = tuple[int, int, int, int]
"""What to do, how many instructions to leave out if it is so and if it is not, and a number."""


def hear_only(found: socket.socket, addresses: Iterable[str]) -> None:
    """Let a socket hear nothing but what is sent to these addresses. Outside of Linux, it hears all as before.

    Example:
        >>> with socket.create_server(("0.0.0.0", 0)) as everywhere:
        ...     hear_only(everywhere, ["127.0.0.1"])
        ...     socket.create_connection(("127.0.0.1", everywhere.getsockname()[1]), timeout=5).close()
    """
    if sys.platform != "linux":
        return
    program = [step for address in addresses for step in _accept(address)] + [(_RETURN, 0, 0, _NOTHING)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    found.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))


def _accept(address: str) -> list[Instruction]:
    """Take a packet that is sent to an address, and go on behind these instructions with any other."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    at, size = _VERSION_OF[parsed.version]
    checks = [(_LOAD_BYTE, _IP_HEADER), (_SHIFT_RIGHT, 4), (_JUMP_IF_EQUAL, parsed.version)]
    for place in range(0, size, 4):
        word = int.from_bytes(parsed.packed[place : place + 4], "big")
        checks += [(_LOAD_WORD, _IP_HEADER + at + place), (_JUMP_IF_EQUAL, word)]
    left = range(len(checks), 0, -1)  # instructions behind each of them, with the last one, which returns
    return [
        (code, 0, behind if code == _JUMP_IF_EQUAL else 0, number)
        for (code, number), behind in zip(checks, left, strict=True)
    ] + [(_RETURN, 0, 0, _WHOLE)]
