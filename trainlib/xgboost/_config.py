"""XGBoost's collective: its settings, and how workers join it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from trainlib._boosting.exchange import connect, leave
from trainlib._execution.backend import Backend, BackendConfig
from trainlib._execution.network import addresses_of, listening_sockets, narrow_listeners
from trainlib._execution.waiting import gather

if TYPE_CHECKING:
    from trainlib._execution.group import WorkerGroup

__all__ = ["XGBoostConfig"]


class XGBoostConfig(BackendConfig):
    """How the workers of an XGBoost training find each other.

    Example:
        >>> from trainlib.xgboost import XGBoostConfig
        >>> XGBoostConfig(timeout_s=600).timeout_s
        600
    """

    framework: ClassVar[str] = "xgboost"
    state_module: ClassVar[str | None] = "trainlib.xgboost._state"

    timeout_s: int = Field(default=1800, gt=0, description="Seconds until a collective that hangs is an error.")

    @property
    def backend_cls(self) -> type[Backend]:
        return XGBoostBackend

    @property
    def train_func_context(self) -> Callable[[], AbstractContextManager[Any]]:
        return communicator


class XGBoostBackend(Backend):
    """Runs XGBoost's tracker in rank 0's process, and tells every worker where it is."""

    def on_start(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        assert isinstance(backend_config, XGBoostConfig)
        if len(worker_group) == 1:
            return
        addresses = addresses_of([member.facts.node_ip for member in worker_group.members])
        timeout_s = backend_config.timeout_s
        tracker = worker_group.execute_single(0, _open_tracker, addresses[0], len(worker_group), timeout_s)
        gather(
            [
                worker_group.execute_single_async(
                    rank, _tell, {**tracker, "dmlc_task_id": f"{rank:08d}", "dmlc_timeout": timeout_s}, address
                )
                for rank, address in enumerate(addresses)
            ],
            timeout=timeout_s,
        )
        connect(worker_group, addresses, timeout_s)

    def on_shutdown(self, worker_group: WorkerGroup, backend_config: BackendConfig) -> None:
        worker_group.execute(_forget)


# In rank 0's process, so that it ends with the gang, however that ends.
_tracker: Any = None
# How this worker joins the others, and the address that it listens on. None if it is alone.
_joining: tuple[dict[str, Any], str] | None = None


def _open_tracker(host: str, workers: int, timeout_s: int) -> dict[str, Any]:
    from xgboost.tracker import RabitTracker

    global _tracker
    _tracker = RabitTracker(n_workers=workers, host_ip=host, sortby="task", timeout=timeout_s)
    _tracker.start()
    return dict(_tracker.worker_args())


def _tell(joining: dict[str, Any], address: str) -> None:
    global _joining
    _joining = (joining, address)


def _forget() -> None:
    global _joining, _tracker
    _joining = None
    leave()
    if _tracker is not None:
        _tracker.free()
        _tracker = None


@contextmanager
def communicator() -> Iterator[None]:
    """Join the other workers while the training function runs: the communicator belongs to the thread that has made it."""
    from trainlib.xgboost._messages import print_messages

    print_messages()
    if _joining is None:
        yield
        return
    from xgboost import collective

    arguments, address = _joining
    before = listening_sockets()
    collective.init(**arguments)
    narrow_listeners(address, but=before)
    try:
        yield
    except Exception:
        # Leaving would wait for the others, or have them raise errors of their own. The gang is ended anyway.
        raise
    except BaseException:
        collective.finalize()  # the others were stopped, too: one that is not at the same report fails, which does not count then
        raise
    collective.finalize()
