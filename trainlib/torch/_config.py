"""PyTorch's process group: its settings, and how workers join it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from trainlib._bounds import LONGEST_S
from trainlib._execution.backend import SHUTDOWN_S, Backend, BackendConfig
from trainlib._execution.network import addresses_of, interface_with, listen
from trainlib._execution.waiting import gather
from trainlib.torch._devices import get_device

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

__all__ = ["TorchConfig"]


class TorchConfig(BackendConfig):
    """How the torch process group is set up.

    Example:
        >>> from trainlib.torch import TorchConfig
        >>> TorchConfig(backend="gloo").timeout_s
        1800
    """

    framework: ClassVar[str] = "torch"
    state_module: ClassVar[str | None] = "trainlib.torch._state"
    positions: ClassVar[tuple[str, ...]] = ("backend", "init_method", "timeout_s")

    backend: Literal["gloo", "nccl", "mpi"] | None = Field(
        default=None, description="The communication backend. Default: nccl with GPUs, else gloo."
    )
    init_method: Literal["env", "tcp"] = Field(
        default="env",
        description="How workers find each other. 'env' also sets MASTER_ADDR and MASTER_PORT for the training function.",
    )
    timeout_s: int = Field(
        default=1800, gt=0, le=LONGEST_S, description="Seconds until a collective that hangs is an error."
    )

    @property
    def backend_cls(self) -> type[Backend]:
        return TorchBackend


class TorchBackend(Backend):
    """Joins the workers into one process group."""

    share_cuda_visible_devices = True

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, TorchConfig)
        addresses = addresses_of([member.facts.node_ip for member in worker_group.members])
        port = worker_group.execute_single(0, _open_store, addresses[0], len(worker_group), backend_config.timeout_s)
        gather(
            [
                worker_group.execute_single_async(
                    member.place.world_rank,
                    _join,
                    backend_config,
                    addresses[0],
                    port,
                    address,
                    {
                        "RANK": member.place.world_rank,
                        "WORLD_SIZE": len(worker_group),
                        "LOCAL_RANK": member.place.local_rank,
                        "LOCAL_WORLD_SIZE": member.place.local_world_size,
                        "NODE_RANK": member.place.node_rank,
                    },
                )
                for member, address in zip(worker_group.members, addresses, strict=True)
            ],
            timeout=backend_config.timeout_s,
        )

    def on_early_return(
        self, worker_group: WorkerGroup, backend_config: BackendConfig, returned: Sequence[int]
    ) -> None:
        for rank in returned:
            worker_group.execute_single_async(rank, _hang_up)

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        worker_group.execute(_leave, timeout=SHUTDOWN_S)


# Kept for as long as the process group exists: in rank 0, the others connect to it.
_store: Any = None


def _dist() -> Any:
    """torch.distributed without its type hints, which are incomplete."""
    import torch.distributed

    return torch.distributed


def _open_store(host: str, world_size: int, timeout_s: int) -> int:
    """Open the store for all ranks. On a socket of our own: torch would listen on all addresses of the host."""
    global _store
    with listen(host) as own:
        port = int(own.getsockname()[1])
        _store = _dist().TCPStore(
            host,
            port,
            world_size,
            is_master=True,
            timeout=timedelta(seconds=timeout_s),
            wait_for_workers=False,
            master_listen_fd=own.detach(),  # closed by the store
        )
    return port


def _join(config: TorchConfig, host: str, port: int, address: str, places: dict[str, int]) -> None:
    import torch

    global _store
    dist = _dist()
    os.environ.update({name: str(value) for name, value in places.items()})
    if config.init_method == "env":
        os.environ.update({"MASTER_ADDR": host, "MASTER_PORT": str(port)})
    if (interface := interface_with(address)) is not None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    timeout = timedelta(seconds=config.timeout_s)
    if places["RANK"] != 0:
        _store = dist.TCPStore(host, port, places["WORLD_SIZE"], is_master=False, timeout=timeout)
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(get_device())
    dist.init_process_group(
        backend=config.backend or ("nccl" if cuda else "gloo"),
        store=dist.PrefixStore("trainlib", _store),
        rank=places["RANK"],
        world_size=places["WORLD_SIZE"],
        timeout=timeout,
    )


def _hang_up() -> None:
    """Close the connections to the other ranks, so that their collectives fail instead of waiting for this one."""
    dist = _dist()
    # With NCCL this would wait for the other ranks. Its collectives end by their timeout instead.
    if dist.is_initialized() and dist.get_backend() == "gloo":
        dist.destroy_process_group()


def _leave() -> None:
    import torch

    global _store
    dist = _dist()
    if dist.is_initialized():
        dist.destroy_process_group()
    _store = None
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
