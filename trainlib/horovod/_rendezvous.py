"""The server where Horovod's workers find each other. It answers only the gang's own hosts."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

from horovod.runner.common.util.hosts import HostInfo, SlotInfo, get_host_assignments
from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer

from trainlib._execution.ports import PortRange, first_free


def slots_of(nodes: Sequence[str]) -> list[SlotInfo]:
    """Horovod's slots for workers, given the node of each rank. Ranks on the same node are consecutive.

    Example:
        >>> [(slot.local_rank, slot.cross_rank, slot.cross_size) for slot in slots_of(["a", "a", "b"])]
        [(0, 0, 2), (1, 0, 1), (0, 1, 2)]
    """
    hosts = [HostInfo(node, count) for node, count in Counter(nodes).items()]
    return get_host_assignments(hosts, len(nodes))  # type: ignore[no-any-return]


class GangServer:
    """Horovod's own server, bound to one address. It serves only known clients."""

    def __init__(self, host: str, clients: set[str], port_range: PortRange | None) -> None:
        kind = _server_for(clients)
        self._server = first_free(port_range, lambda port: kind((host, port), RendezvousHandler, verbose=0))
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="horovod-rendezvous", daemon=True)

    def serve(self, slots: Sequence[SlotInfo]) -> None:
        """Start answering the workers in these slots."""
        self._server.init(slots)
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _server_for(clients: set[str]) -> Any:
    class Server(RendezvousHTTPServer):  # type: ignore[misc]
        allow_reuse_address = True
        daemon_threads = True

        def verify_request(self, request: socket.socket, client_address: tuple[str, int]) -> bool:
            return client_address[0] in clients

    return Server
