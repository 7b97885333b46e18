"""A port that is held is nobody else's, and goes over to its server without being free in between."""

from __future__ import annotations

import socket

import pytest
from pydantic import TypeAdapter, ValidationError

from trainlib._execution.ports import HeldPort, PortRange, first_free
from trainlib.errors import PortsTakenError


def hold(ports: PortRange | None = None) -> HeldPort:
    return first_free(ports, HeldPort)


def connected(port: int) -> None:
    """Serve one connection on a port, closing it from the server's side, so that the port has to wait afterwards."""
    with socket.create_server(("", port)) as server, socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        server.accept()[0].close()
        client.recv(1)


def test_a_held_port_is_not_given_again():
    with hold() as first, pytest.raises(PortsTakenError):
        hold((first.number, first.number))
    with hold((first.number, first.number)) as again:
        assert again.number == first.number


def test_a_server_takes_a_held_port_over():
    with hold() as held:
        connected(held.number)


def test_a_port_is_free_again_right_after_its_last_connection():
    with hold() as held:
        connected(held.number)
    with hold((held.number, held.number)) as again:
        assert again.number == held.number


def test_a_range_is_searched_for_a_free_port():
    with hold() as first, hold((first.number, first.number + 20)) as second:
        assert first.number < second.number <= first.number + 20


def test_a_range_that_is_taken_is_named():
    with socket.create_server(("", 0)) as server:
        number = server.getsockname()[1]
        with pytest.raises(PortsTakenError, match=rf"no port of \({number}, {number}\) is free on .*port_range"):
            hold((number, number))


def test_another_error_than_a_taken_port_is_told_as_it_is():
    def refuse(port: int) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        first_free((80, 81), refuse)


@pytest.mark.parametrize("value", [(5, 4), (0, 10), (1, 70000)])
def test_a_range_that_is_none_is_refused(value):
    with pytest.raises(ValidationError):
        TypeAdapter(PortRange).validate_python(value)
