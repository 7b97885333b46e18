"""A port that is held is nobody else's, and goes over to its server without being free in between."""

from __future__ import annotations

import socket

import pytest
from pydantic import TypeAdapter, ValidationError

from trainlib.errors import PortsTakenError
from trainlib.execution import ports
from trainlib.execution.ports import PortRange

HOST = "127.0.0.1"


def port_of(held: socket.socket) -> int:
    return held.getsockname()[1]


def test_a_held_port_is_not_given_again():
    with ports.hold(HOST) as first:
        number = port_of(first)
        with pytest.raises(PortsTakenError):
            ports.hold(HOST, (number, number))
    with ports.hold(HOST, (number, number)) as again:
        assert port_of(again) == number


def test_a_server_takes_a_held_port_over():
    with (
        ports.hold(HOST) as held,
        socket.create_server((HOST, port_of(held))) as server,
        socket.create_connection((HOST, port_of(held)), timeout=5),
    ):
        server.accept()[0].close()


def test_a_range_is_searched_for_a_free_port():
    with ports.hold(HOST) as first:
        number = port_of(first)
        with ports.hold(HOST, (number, number + 20)) as second:
            assert number < port_of(second) <= number + 20


def test_a_range_that_is_taken_is_named():
    with socket.create_server((HOST, 0)) as server:
        number = port_of(server)
        with pytest.raises(PortsTakenError, match=rf"no port of \({number}, {number}\) is free on .*port_range"):
            ports.hold(HOST, (number, number))


@pytest.mark.parametrize("value", [(5, 4), (0, 10), (1, 70000)])
def test_a_range_that_is_none_is_refused(value):
    with pytest.raises(ValidationError):
        TypeAdapter(PortRange).validate_python(value)
