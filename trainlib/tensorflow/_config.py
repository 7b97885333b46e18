"""TensorFlow's cluster: its settings, and how workers find each other."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from trainlib._bounds import LONGEST_S
from trainlib._execution.backend import SHUTDOWN_S, Backend, BackendConfig
from trainlib._execution.network import addresses_of
from trainlib._execution.ports import HeldPort, PortRange, first_free
from trainlib._execution.waiting import gather
from trainlib.tensorflow._generated import remove_generated_files

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

__all__ = ["TensorflowConfig"]


class TensorflowConfig(BackendConfig):
    """How the workers become one TensorFlow cluster.

    Example:
        >>> from trainlib.tensorflow import TensorflowConfig
        >>> TensorflowConfig(port_range=(20000, 20100)).timeout_s
        1800
    """

    framework: ClassVar[str] = "tensorflow"
    state_module: ClassVar[str | None] = "trainlib.tensorflow._state"

    timeout_s: int = Field(
        default=1800, gt=0, le=LONGEST_S, description="Seconds until a collective that makes no progress is an error."
    )
    port_range: PortRange | None = Field(
        default=None, description="First and last port that workers may listen on. Default: any free port."
    )

    @property
    def backend_cls(self) -> type[Backend]:
        return TensorflowBackend


class TensorflowBackend(Backend):
    """Gives every worker the addresses of all, in TF_CONFIG, which TensorFlow's strategies read."""

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, TensorflowConfig)
        numbers = worker_group.execute(_hold_port, backend_config.port_range)
        hosts = addresses_of([member.facts.node_ip for member in worker_group.members])
        addresses = [f"{host}:{port}" for host, port in zip(hosts, numbers, strict=True)]
        gather(
            [
                worker_group.execute_single_async(rank, _configure, addresses, rank, backend_config.timeout_s)
                for rank in range(len(worker_group))
            ]
        )

    def on_early_return(
        self, worker_group: WorkerGroup, backend_config: BackendConfig, returned: Sequence[int]
    ) -> None:
        # A worker that has returned still answers its peers. So the collectives of those that run are aborted.
        names = ", ".join(map(str, returned))
        for rank in set(range(len(worker_group))) - set(returned):
            worker_group.execute_single_async(rank, _abort_collectives, f"rank {names} has returned")

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        worker_group.execute(remove_generated_files, timeout=SHUTDOWN_S)


# Held until the process ends, so that no other process takes the port.
_held: HeldPort | None = None


def _hold_port(port_range: PortRange | None) -> int:
    global _held
    _held = first_free(port_range, HeldPort)
    return _held.number


def _configure(addresses: list[str], rank: int, timeout_s: int) -> None:
    from trainlib.tensorflow import _guard as guard

    task = {"type": "worker", "index": rank}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": addresses}, "task": task})
    guard.install(world_size=len(addresses), timeout_s=timeout_s)


def _abort_collectives(why: str) -> None:
    from trainlib.tensorflow._stalls import abort_collectives

    abort_collectives(why)
