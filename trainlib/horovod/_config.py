"""Horovod's ring: its settings, and how workers join it."""

from __future__ import annotations

import importlib
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import psutil
from pydantic import Field

from trainlib import session
from trainlib._bounds import LONGEST_S
from trainlib._execution.backend import SHUTDOWN_S, Backend, BackendConfig
from trainlib._execution.network import LOOPBACK, addresses_of, interface_with
from trainlib._execution.ports import PortRange
from trainlib._execution.waiting import gather
from trainlib.errors import StalledError
from trainlib.tensorflow._generated import remove_generated_files

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup
    from trainlib.horovod._rendezvous import GangServer

__all__ = ["HorovodConfig"]

_LOG_LEVELS = ("error", "warning", "info", "debug", "trace")


class HorovodConfig(BackendConfig):
    """How the workers become one Horovod job.

    Example:
        >>> from trainlib.horovod import HorovodConfig
        >>> HorovodConfig(stall_shutdown_s=60).stall_check_s
        60
    """

    framework: ClassVar[str] = "horovod"
    state_module: ClassVar[str | None] = "trainlib.horovod._state"

    init: Literal["torch", "tensorflow"] | None = Field(
        default=None,
        description="Initialise Horovod for this framework before the training function, which may still call "
        "hvd.init(). Default: the function does it.",
    )
    timeout_s: int = Field(
        default=300,
        gt=0,
        le=LONGEST_S,
        description="Seconds that a worker waits for others in hvd.init() and in a transfer.",
    )
    stall_check_s: int = Field(
        default=60,
        ge=0,
        le=LONGEST_S,
        description="Seconds until a rank that is missing in a collective is logged. 0: never.",
    )
    stall_shutdown_s: int = Field(
        default=1800,
        ge=0,
        le=LONGEST_S,
        description="Seconds until a rank that is missing in a collective is an error. 0: never.",
    )
    placement_group_timeout_s: float | None = Field(
        default=None,
        gt=0,
        description="Seconds to wait for the resources of all workers. Default: as in ScalingConfig.",
    )
    nics: set[str] | None = Field(
        default=None, description="Network interfaces to use. Default: the one with the node's address."
    )
    port_range: PortRange | None = Field(
        default=None, description="First and last port for the rendezvous server. Default: any free port."
    )
    verbose: int = Field(default=0, ge=0, le=4, description="How much Horovod itself logs, from 0 to 4.")

    @property
    def backend_cls(self) -> type[Backend]:
        return HorovodBackend


class HorovodBackend(Backend):
    """Runs a rendezvous server in rank 0's process, and gives every worker its rank and the server's address."""

    share_cuda_visible_devices = True  # scripts pick the GPU of their local rank

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, HorovodConfig)
        members = worker_group.members
        addresses = addresses_of([member.facts.node_ip for member in members])
        nodes = [member.facts.node_id for member in members]
        port, slots = worker_group.execute_single(
            0, _open_rendezvous, addresses[0], nodes, sorted(set(addresses)), backend_config.port_range
        )
        gather(
            [
                worker_group.execute_single_async(
                    rank,
                    _configure,
                    backend_config,
                    addresses[0],
                    port,
                    slot,
                    addresses[rank],
                )
                for rank, slot in enumerate(slots)
            ],
            timeout=backend_config.timeout_s,
        )

    def on_early_return(
        self, worker_group: WorkerGroup, backend_config: BackendConfig, returned: Sequence[int]
    ) -> None:
        for rank in range(len(worker_group)):
            if rank in returned:
                worker_group.execute_single_async(rank, _shut_down)
            else:
                worker_group.execute_single_async(rank, _give_up_joining, list(returned))

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        worker_group.execute(_shut_down, timeout=SHUTDOWN_S)
        worker_group.execute(remove_generated_files, timeout=SHUTDOWN_S)
        worker_group.execute_single(0, _close_rendezvous)


# In rank 0's process, so that it ends with the gang, however that ends.
_server: GangServer | None = None


def _open_rendezvous(
    host: str, nodes: list[str], clients: list[str], port_range: PortRange | None
) -> tuple[int, list[dict[str, Any]]]:
    from trainlib.horovod._rendezvous import GangServer, slots_of

    global _server
    slots = slots_of(nodes)
    _server = GangServer(host, {LOOPBACK, *clients}, port_range)
    _server.serve(slots)
    return _server.port, [asdict(slot) for slot in slots]


def _close_rendezvous() -> None:
    global _server
    if _server is not None:
        _server.close()
        _server = None


def _configure(config: HorovodConfig, host: str, port: int, slot: dict[str, Any], address: str) -> None:
    from trainlib.horovod import _guard as guard
    from trainlib.horovod import _installed as installed

    installed.require()
    settings = {
        **{key.upper(): value for key, value in slot.items()},  # RANK, LOCAL_RANK, CROSS_SIZE, HOSTNAME, ...
        "CONTROLLER": "gloo",
        "CPU_OPERATIONS": "gloo",
        "GLOO_RENDEZVOUS_ADDR": host,
        "GLOO_RENDEZVOUS_PORT": port,
        "GLOO_IFACE": _interface(address, config.nics),
        "GLOO_TIMEOUT_SECONDS": config.timeout_s,
        **_stall_settings(config.stall_check_s, config.stall_shutdown_s),
        "LOG_LEVEL": _LOG_LEVELS[config.verbose],
    }
    os.environ.update({f"HOROVOD_{name}": str(value) for name, value in settings.items()})
    guard.install()
    if config.init is not None:
        importlib.import_module(f"horovod.{config.init}").init()


def _stall_settings(check_s: int, shutdown_s: int) -> dict[str, int]:
    """Horovod ends a stalled job only if the check is on and comes no later than the shutdown."""
    if shutdown_s:
        check_s = min(check_s or shutdown_s, shutdown_s)
    return {
        "STALL_CHECK_DISABLE": int(check_s == 0),
        "STALL_CHECK_TIME_SECONDS": check_s,
        "STALL_SHUTDOWN_TIME_SECONDS": shutdown_s,
    }


def _interface(address: str, allowed: set[str] | None) -> str:
    """The network interface to use: one that is allowed, or by default the one with the address."""
    here = psutil.net_if_addrs()
    found = next((name for name in here if name in allowed), None) if allowed else interface_with(address)
    if found is not None:
        return found
    wanted = f"is named {' or '.join(sorted(allowed))}" if allowed else f"has the address {address}"
    raise OSError(
        f"no network interface of {socket.gethostname()} {wanted}. Set HorovodConfig.nics to any of {', '.join(here)}"
    )


def _shut_down() -> None:
    """Leave the job, so that the collectives of the others fail instead of waiting for this rank."""
    for framework in ("torch", "tensorflow"):
        library: Any = sys.modules.get(f"horovod.{framework}")
        if hasattr(library, "is_initialized") and library.is_initialized():
            library.shutdown()


def _give_up_joining(returned: list[int]) -> None:
    """Fail if this rank waits in ``hvd.init()`` for ranks that have already returned."""
    frames = (frame.f_code for frame in sys._current_frames().values())
    if any(code.co_name == "init" and code.co_filename.endswith("horovod/common/basics.py") for code in frames):
        names = ", ".join(map(str, returned))
        session.current("hvd.init").give_up(
            StalledError(
                f"hvd.init() waits for rank {names}, which has already returned. Every rank must call hvd.init()"
            )
        )
