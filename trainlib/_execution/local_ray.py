"""A Ray of this machine alone: it listens on loopback, and runs no process that one machine does not need."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import ray
from ray._private import ray_constants

from trainlib._execution import become_worker, no_dashboard_agent
from trainlib._execution.network import LOOPBACK
from trainlib._execution.ports import HeldPort

__all__ = ["SPARE_CPUS", "expect_one_machine", "only_loopback", "start_local"]

# Workers reserve CPUs for as long as they train. Without any left over, a data pipeline that feeds
# them would wait for a CPU for ever, and they for it.
SPARE_CPUS = 2

_NEVER_S = 10 * 365 * 24 * 3600

_agents_ports: list[HeldPort | socket.socket] = []
"""Those of Ray's agents, for as long as this process lives: the one that runs uses its own a little after Ray has started."""


def start_local() -> None:
    """Start it. To be called within :func:`only_loopback`.

    Its agents are given their ports. Ray would wait until they have told theirs, but for 15 s at most: on a busy machine, it would then
    not start at all. What they would tell is written for them.
    """
    expect_one_machine()
    for port in _agents_ports:
        port.close()
    # Ray calls these although nobody is there, and tells its token to whoever answers. Nobody else can, as long as somebody listens.
    unanswered = [socket.create_server((LOOPBACK, 0)) for _ in range(3)]
    metrics, exported, requests = (int(each.getsockname()[1]) for each in unanswered)
    environments = HeldPort(0)
    _agents_ports[:] = [*unanswered, environments]
    given = {
        "metrics_agent_port": metrics,
        "dashboard_agent_listen_port": requests,
        "runtime_env_agent_port": environments.number,
    }
    with _only_what_one_machine_needs(given):
        ray.init(
            address="local",  # not one that somebody else has started on this machine
            num_cpus=(os.cpu_count() or 1) + SPARE_CPUS,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            _system_config={
                # Ray makes workers yield to everything else by default. Here they are what the machine is for.
                "worker_niceness": 0,
                # A minute after its control service is gone, Ray ends every process that is connected to it, also a notebook
                # that has joined a platform and trains nothing.
                "gcs_rpc_server_reconnect_timeout_s": _NEVER_S,
                "enable_metrics_collection": False,  # there is no agent that would take them
            },
            _node_ip_address=LOOPBACK,
            _metrics_export_port=exported,
        )


def expect_one_machine() -> None:
    """Set for this process what Ray reads in whoever uses it.

    Datasets that users open with ``ray.data.read_parquet`` would start 32 processes each, for as many machines, to read the ends of
    files with. Here one does. And nobody collects statistics of usage, for which Ray Data starts a process, too.
    """
    os.environ.setdefault("RAY_DATA_PARQUET_FOOTER_NUM_ACTORS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@contextmanager
def only_loopback() -> Iterator[None]:
    """Let Ray accept the loopback address for its node, as it does by itself on systems where it starts no clusters.

    Otherwise it takes the address of the host in its place, and all its processes listen on all interfaces.
    """
    may_start_clusters = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = may_start_clusters


@contextmanager
def _only_what_one_machine_needs(given: dict[str, int]) -> Iterator[None]:
    """Start Ray without processes that take a second of processor time each, and workers by a script that does not import Ray twice.

    What is left out: the autoscaler, which has nothing to scale; what sends the output of workers to drivers, which nobody reads; the
    server of the dashboard, which Ray starts for statistics of usage even where there is no dashboard; and that dashboard's agent.

    Args:
        given: More settings of Ray's, by their names there.
    """
    from ray._private import parameter, services

    settings: Any = parameter.RayParams
    start_dashboard: Any = services.start_api_server
    start_raylet: Any = services.start_raylet
    parameter.RayParams = partial(  # type: ignore[misc,assignment]
        settings, no_monitor=True, include_log_monitor=False, setup_worker_path=become_worker.__file__, **given
    )
    services.start_api_server = _start_no_dashboard
    services.start_raylet = partial(_start_raylet, start_raylet)
    command_of: Any = services._build_python_executable_command_memory_profileable
    services._build_python_executable_command_memory_profileable = partial(_command_of, command_of)  # type: ignore[assignment]
    try:
        yield
    finally:
        services._build_python_executable_command_memory_profileable = command_of
        parameter.RayParams = settings  # type: ignore[misc]
        services.start_api_server = start_dashboard
        services.start_raylet = start_raylet


def _start_raylet(start: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Start Ray's raylet, which finds the ports of its agents told already, by files in the folder of its session."""
    raylet: Any = import_module("ray._raylet")
    given = signature(start).bind(*args, **kwargs).arguments
    for name, argument in (
        (raylet.DASHBOARD_AGENT_LISTEN_PORT_NAME, "dashboard_agent_listen_port"),
        (raylet.METRICS_AGENT_PORT_NAME, "metrics_agent_port"),
        (raylet.METRICS_EXPORT_PORT_NAME, "metrics_export_port"),
        (raylet.RUNTIME_ENV_AGENT_PORT_NAME, "runtime_env_agent_port"),
    ):
        raylet.persist_port(given["session_dir"], given["node_id"], name, given[argument])
    return start(*args, **kwargs)


def _command_of(command_of: Callable[..., list[str]], component: str, *args: Any, **kwargs: Any) -> list[str]:
    """The command that a process of Ray's is started with. Arguments for Ray's own script follow it."""
    if component == ray_constants.PROCESS_TYPE_DASHBOARD_AGENT:
        return [sys.executable, "-S", "-E", no_dashboard_agent.__file__]
    return command_of(component, *args, **kwargs)


def _start_no_dashboard(*_: Any, **__: Any) -> tuple[None, None]:
    """What Ray gets where its dashboard did not start: no address, and no process."""
    return None, None
