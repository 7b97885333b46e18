"""A socket that listens on all addresses hears only those that it should."""

from __future__ import annotations

import socket

import pytest

from trainlib._execution.packet_filter import hear_only


def hears(listener: socket.socket, address: str) -> bool:
    """Whether one who connects to this address gets an answer."""
    try:
        with socket.create_connection((address, listener.getsockname()[1]), timeout=0.5) as caller:
            answering, _ = listener.accept()
            with answering:
                answering.sendall(b"here")
                return caller.recv(4) == b"here"
    except TimeoutError:
        return False


OF_IP_4 = [
    (socket.AF_INET, ["127.0.0.1"], ["127.0.0.1"]),
    (socket.AF_INET, ["127.0.0.2", "::1"], ["127.0.0.2"]),
    (socket.AF_INET, ["127.0.0.3", "127.0.0.1"], ["127.0.0.1", "127.0.0.3"]),
]
OF_BOTH = [
    (socket.AF_INET6, ["::1"], ["::1"]),
    (socket.AF_INET6, ["fe80::1%lo", "127.0.0.1", "::1"], ["127.0.0.1", "::1"]),
]


@pytest.mark.parametrize(("family", "given", "heard"), OF_IP_4 + OF_BOTH if socket.has_dualstack_ipv6() else OF_IP_4)
def test_only_what_is_sent_to_the_addresses_is_heard(family, given, heard):
    asked = ["127.0.0.1", "127.0.0.2", "127.0.0.3", *(["::1"] if family == socket.AF_INET6 else [])]
    is_both = family == socket.AF_INET6
    with socket.create_server(("", 0), family=family, dualstack_ipv6=is_both) as listener:
        assert [address for address in asked if hears(listener, address)] == asked
        hear_only(listener, given)
        assert [address for address in asked if hears(listener, address)] == heard
