"""LightGBM's network: its settings, and how workers join it."""

from __future__ import annotations

import math
import socket
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from trainlib._boosting.exchange import connect, leave
from trainlib._execution.backend import Backend, BackendConfig
from trainlib._execution.network import addresses_of
from trainlib._execution.waiting import gather

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

__all__ = ["LightGBMConfig", "get_network_params"]


class LightGBMConfig(BackendConfig):
    """How the workers of a LightGBM training find each other.

    Example:
        >>> from trainlib.lightgbm import LightGBMConfig
        >>> LightGBMConfig(timeout_s=600).timeout_s
        600
    """

    framework: ClassVar[str] = "lightgbm"
    state_module: ClassVar[str | None] = "trainlib.lightgbm._state"

    timeout_s: int = Field(
        default=1800,
        gt=0,
        description="Seconds until a worker that does not answer is an error. LightGBM counts in minutes: it is rounded up.",
    )

    @property
    def backend_cls(self) -> type[Backend]:
        return LightGBMBackend


class LightGBMBackend(Backend):
    """Gives every worker a port, and tells it those of the others. LightGBM connects them when it trains."""

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, LightGBMConfig)
        if len(worker_group) == 1:
            return
        addresses = addresses_of([member.facts.node_ip for member in worker_group.members])
        ranks = range(len(worker_group))
        timeout_s = backend_config.timeout_s
        ports = gather([worker_group.execute_single_async(rank, _hold_port) for rank in ranks], timeout=timeout_s)
        machines = ",".join(f"{address}:{port}" for address, port in zip(addresses, ports, strict=True))
        gather(
            [
                worker_group.execute_single_async(rank, _tell, _network(machines, ports[rank], timeout_s))
                for rank in ranks
            ],
            timeout=timeout_s,
        )
        connect(worker_group, addresses, timeout_s)

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        worker_group.execute(_forget)


# A port that LightGBM is going to listen on, and how this worker joins the others. None if it is alone.
_held: socket.socket | None = None
_params: dict[str, Any] | None = None


def _hold_port() -> int:
    """A port that is free. It is held until LightGBM needs it: otherwise two workers of a host could get the same one."""
    global _held
    _held = socket.socket()
    _held.bind(("", 0))
    return int(_held.getsockname()[1])


def _network(machines: str, port: int, timeout_s: int) -> dict[str, Any]:
    return {
        "machines": machines,
        "local_listen_port": port,
        "num_machines": machines.count(",") + 1,
        "time_out": math.ceil(timeout_s / 60),
        "tree_learner": "data_parallel",
        "pre_partition": True,
    }


def _tell(params: dict[str, Any]) -> None:
    global _params
    _params = params


def _forget() -> None:
    global _params
    _release_port()
    _params = None
    leave()


def _release_port() -> None:
    global _held
    if _held is not None:
        _held.close()
        _held = None


def get_network_params() -> dict[str, Any]:
    """LightGBM's parameters that let the workers of a training train together. Empty if there is one worker.

    In a training function of your own, add them to those of ``lightgbm.train`` and of its datasets.

    Example:
        >>> from trainlib.lightgbm import get_network_params
        >>> def train_func(config):
        ...     import lightgbm
        ...
        ...     params = {"objective": "binary", **get_network_params()}
        ...     lightgbm.train(params, lightgbm.Dataset(config["rows"], config["labels"], params=params))
        >>> get_network_params()
        {}
    """
    _release_port()
    return dict(_params or {})
