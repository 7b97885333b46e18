"""The rendezvous server answers the gang, and nobody else."""

from __future__ import annotations

import http.client
import socket

import pytest

from trainlib.errors import PortsTakenError
from trainlib.horovod._rendezvous import GangServer, slots_of


def put_and_get(port: int) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("PUT", "/scope/key", body=b"value")
    connection.getresponse().read()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/scope/key")
    return connection.getresponse().read()


@pytest.fixture
def serve():
    servers = []

    def start(*clients: str) -> GangServer:
        servers.append(GangServer("127.0.0.1", set(clients), None))
        servers[-1].serve(slots_of(["a", "a"]))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_it_answers_the_hosts_of_the_gang(serve):
    assert put_and_get(serve("127.0.0.1").port) == b"value"


def test_it_does_not_answer_other_hosts(serve):
    with pytest.raises(ConnectionError):
        put_and_get(serve("192.0.2.77").port)


def test_it_listens_only_on_its_own_address(serve):
    others = [
        address[4][0]
        for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        if not address[4][0].startswith("127.0.0.1")
    ] + ["127.0.0.2"]
    for other in others:
        with pytest.raises(OSError):  # noqa: PT011
            socket.create_connection((other, serve("127.0.0.1").port), timeout=5)


def test_a_closed_server_frees_its_port(serve):
    server = GangServer("127.0.0.1", {"127.0.0.1"}, None)
    server.serve(slots_of(["a"]))
    port = server.port
    put_and_get(port)  # the server closes such connections, so that the port has to wait afterwards
    server.close()
    again = GangServer("127.0.0.1", {"127.0.0.1"}, (port, port))
    again.serve(slots_of(["a"]))
    again.close()


def test_a_port_range_that_is_taken_is_an_error(serve):
    port = serve("127.0.0.1").port
    with pytest.raises(PortsTakenError):
        GangServer("127.0.0.1", {"127.0.0.1"}, (port, port))


def test_slots_on_nodes_of_unequal_size():
    places = [
        (slot.rank, slot.local_rank, slot.local_size, slot.cross_rank, slot.cross_size) for slot in slots_of("aaab")
    ]
    assert places == [(0, 0, 3, 0, 2), (1, 1, 3, 0, 1), (2, 2, 3, 0, 1), (3, 0, 1, 1, 2)]
