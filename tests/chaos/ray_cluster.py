"""A Ray of two nodes in a process of its own: ``python -m tests.chaos.ray_cluster PORT``.

The head has no processors, so that all workers are on the second node. Commands come in by standard input, and each is
answered by a line of JSON. It ends, with all of its processes, when standard input is closed.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from ray._private.node import Node
from ray._private.parameter import RayParams
from ray._private.state import GlobalState
from ray._raylet import GcsClientOptions

from trainlib._execution import become_worker

CPUS = 6
AWAY_S = 2.0
"""How long there is no GCS."""
NOTICES = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
"""How soon it notices that a node is lost. By default it takes a quarter of a minute."""


class RayCluster:
    """A head, and one node with processors."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._start()

    def lose_node(self) -> None:
        """The raylet of the node with the workers is killed, and another node comes."""
        self._node.kill_raylet()
        self._node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)
        self._node = self._start_node()

    def lose_gcs(self) -> None:
        """The GCS is killed. A while later, somebody starts all of Ray again at the same address."""
        self._head.kill_gcs_server()
        time.sleep(AWAY_S)
        self.stop()
        self._start()

    def left(self) -> dict[str, int]:
        """How many actors and placement groups there still are."""
        state = GlobalState()
        options = GcsClientOptions.create(
            self._head.gcs_address, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False
        )
        state._initialize_global_state(options)
        try:
            actors = state.actor_table(None).values()
            groups = state.placement_group_table().values()
            return {
                "actors": sum(actor["State"] not in ("DEAD",) for actor in actors),
                "groups": sum(group["state"] != "REMOVED" for group in groups),
            }
        finally:
            state.disconnect()

    def stop(self) -> None:
        """End all of its processes."""
        for node in (self._node, self._head):
            node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)

    def _start(self) -> None:
        self._head = Node(
            _settings(0, gcs_server_port=self._port, include_dashboard=False, no_monitor=True, _system_config=NOTICES),
            head=True,
            shutdown_at_exit=True,
            spawn_reaper=False,
        )
        self._node = self._start_node()

    def _start_node(self) -> Node:
        settings = _settings(CPUS, gcs_address=self._head.gcs_address, dashboard_agent_listen_port=None)
        return Node(settings, head=False, shutdown_at_exit=True, spawn_reaper=False)


def _settings(cpus: int, **settings: Any) -> RayParams:
    return RayParams(
        num_cpus=cpus,
        num_gpus=0,
        object_store_memory=150 * 1024**2,
        min_worker_port=0,
        max_worker_port=0,
        node_manager_port=0,
        include_log_monitor=False,
        setup_worker_path=become_worker.__file__,
        **settings,
    )


def main(port: str) -> None:
    cluster = RayCluster(int(port))
    commands = {"lose_node": cluster.lose_node, "lose_gcs": cluster.lose_gcs, "left": cluster.left}
    try:
        print(json.dumps("ready"), flush=True)
        for command in sys.stdin:
            print(json.dumps(commands[command.strip()]()), flush=True)
    finally:
        cluster.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
