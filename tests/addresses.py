"""Addresses of this machine, for tests of several hosts."""

from __future__ import annotations

import socket

import psutil

__all__ = ["address_for_other_hosts"]


def address_for_other_hosts() -> str:
    """One by which other hosts would reach this machine. Without a network, that of loopback."""
    found = (
        each.address for of_one in psutil.net_if_addrs().values() for each in of_one if each.family == socket.AF_INET
    )
    return next((address for address in found if not address.startswith("127.")), "127.0.0.1")
