"""What a training function calls: report, get_checkpoint, get_dataset_shard, get_context, and ranks.

A worker process has one session while the training function runs. It is not bound to a thread, because frameworks
call back from their own threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from trainlib._given_checkpoint import checkpoint_to_report
from trainlib.errors import InvalidArgumentError, SessionUnavailableError

if TYPE_CHECKING:
    from trainlib._data.shard import DatasetShard
    from trainlib.checkpoint import Checkpoint
    from trainlib.config import CheckpointConfig

__all__ = [
    "TrainContext",
    "get_checkpoint",
    "get_context",
    "get_dataset_shard",
    "get_experiment_name",
    "get_local_rank",
    "get_local_world_size",
    "get_node_rank",
    "get_storage_path",
    "get_trial_dir",
    "get_trial_id",
    "get_trial_name",
    "get_trial_resources",
    "get_world_rank",
    "get_world_size",
    "load_checkpoint",
    "local_rank",
    "report",
    "save_checkpoint",
    "world_rank",
    "world_size",
]


@dataclass(frozen=True)
class TrainContext:
    """A worker's ranks, and the training that it belongs to.

    Example:
        >>> from trainlib import TrainContext
        >>> TrainContext(world_rank=1, world_size=2).get_world_rank()
        1
    """

    world_rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0
    trial_name: str = ""
    trial_id: str = ""
    trial_dir: str = ""
    trial_resources: dict[str, float] = field(default_factory=dict)
    experiment_name: str = ""
    storage_path: str = ""
    run_id: str = ""
    attempt: int = 1

    def get_world_rank(self) -> int:
        """This worker's place among all workers, from 0."""
        return self.world_rank

    def get_world_size(self) -> int:
        """How many workers train together."""
        return self.world_size

    def get_local_rank(self) -> int:
        """This worker's place among the workers of its node, from 0."""
        return self.local_rank

    def get_local_world_size(self) -> int:
        """How many workers are on this node."""
        return self.local_world_size

    def get_node_rank(self) -> int:
        """This node's place among the nodes, from 0."""
        return self.node_rank

    def get_trial_name(self) -> str:
        """The training's name."""
        return self.trial_name

    def get_trial_id(self) -> str:
        """The training's id."""
        return self.trial_id

    def get_trial_dir(self) -> str:
        """The training's local log directory."""
        return self.trial_dir

    def get_trial_resources(self) -> dict[str, float]:
        """What the training has reserved: all its workers together, and the trainer."""
        return dict(self.trial_resources)

    def get_experiment_name(self) -> str:
        """The MLflow experiment."""
        return self.experiment_name

    def get_storage_path(self) -> str:
        """Where the experiment's artifacts are kept."""
        return self.storage_path

    def get_run_id(self) -> str:
        """The MLflow run of this training, the same in every attempt."""
        return self.run_id

    def get_attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.attempt


class Session(Protocol):
    """What implements the functions of this module inside a worker."""

    context: TrainContext
    checkpoint_config: CheckpointConfig
    """When a trainer without a training function of the user's is to save."""
    dataset_names: tuple[str, ...]
    checkpoint_was_asked_for: bool
    resume_from: Checkpoint | None
    """What the attempt started from."""

    def report(
        self,
        metrics: dict[str, Any],
        checkpoint: Checkpoint | None,
        when_stopped: Callable[[], Checkpoint] | None = None,
    ) -> None:
        """Make a report. ``when_stopped`` makes the checkpoint that is saved if the training is stopped here without one."""

    def save(self, checkpoint: Checkpoint) -> None: ...

    def latest_checkpoint(self) -> Checkpoint | None: ...

    def dataset_shard(self, name: str) -> DatasetShard | None: ...

    def seeded(self, seed: int) -> None:
        """The training function has set the seeds of its random numbers."""

    def send_file(self, name: str, content: bytes) -> None:
        """Put a file into the training's folder, wherever this worker is."""

    def give_up(self, error: Exception) -> None:
        """End the attempt with this error, because the training function hangs and cannot raise it."""


_session: Session | None = None


def enter(session: Session | None) -> None:
    """Set the session of this process. None removes it."""
    global _session
    _session = session


def note_seed(seed: int) -> None:
    """Record a seed with the training that this process works for, if it works for one."""
    if _session is not None:
        _session.seeded(seed)


def current(function: str) -> Session:
    """The session of this process, or an error that names the function that needs it."""
    if _session is None:
        raise SessionUnavailableError(
            f"{function}() was called outside of a training function. Call it in the function that a trainer runs, e.g. "
            "TorchTrainer(train_loop_per_worker=...)"
        )
    return _session


def report(metrics: dict[str, Any] | None = None, *, checkpoint: Checkpoint | None = None, **more: Any) -> None:
    """Report metrics, and optionally a checkpoint. All ranks must call it equally often. Rank 0's metrics are recorded.

    It returns once it has a snapshot of the checkpoint: recording and uploading happen in the background. Metrics may be
    passed as a dict or as keyword arguments.

    Any dict will do. ``result.metrics`` and callbacks have it as it was reported, with scalars of numpy and of a framework as
    Python's numbers. In MLflow, numbers are metrics, nested ones under names such as ``val/acc``, and the latest of each other
    value is a tag ``reported.<name>``.

    Example:
        >>> from trainlib import session
        >>> def train_func(config):
        ...     for epoch in range(config["num_epochs"]):
        ...         session.report({"epoch": epoch})

    Raises:
        MetricError: a ``ValueError``; the metrics have a tensor of several numbers, or a model in them, which belong into a
            checkpoint.
    """
    if metrics is not None and not isinstance(metrics, dict):
        raise InvalidArgumentError(
            f"report() takes a dict of metrics, but got a {type(metrics).__name__}: write report({{'loss': loss}})"
        )
    current("report").report({**(metrics or {}), **more}, checkpoint_to_report(checkpoint))


def get_checkpoint() -> Checkpoint | None:
    """The checkpoint that was saved last, the same on all ranks: rank 0's.

    Before this attempt has saved one, it is the newest of earlier attempts, or ``resume_from_checkpoint``. None on a fresh
    start. A rank that is ahead of rank 0 waits until that has called ``report()`` as often. A rank that is behind gets what
    rank 0 got at the same place.
    """
    running = current("get_checkpoint")
    running.checkpoint_was_asked_for = True
    return running.latest_checkpoint()


def save_checkpoint(**state: Any) -> None:
    """Save ``state`` as a checkpoint, without reporting metrics."""
    from trainlib.checkpoint import Checkpoint

    current("save_checkpoint").save(Checkpoint.from_dict(state))


def load_checkpoint() -> dict[str, Any] | None:
    """The most recently saved checkpoint as a dict. None on a fresh start."""
    current("load_checkpoint")
    checkpoint = get_checkpoint()
    return checkpoint.to_dict() if checkpoint is not None else None


def get_dataset_shard(dataset_name: str = "train") -> DatasetShard | None:
    """This worker's share of one of the trainer's datasets. By default ``train`` is split, and the others are whole.

    None if the trainer has no such dataset, so that a training function can do without, e.g. without ``validation``.

    Read it with ``iter_batches()``, ``iter_torch_batches()``, ``to_torch()``, ``iter_tf_batches()``, ``to_tf()``,
    ``iter_rows()`` or ``materialize()``. Every loop is an epoch.

    Example:
        >>> from trainlib import session
        >>> def train_func(config):
        ...     shard = session.get_dataset_shard("train")
        ...     for epoch in range(config["num_epochs"]):
        ...         for batch in shard.iter_torch_batches(batch_size=32):
        ...             ...
    """
    return current("get_dataset_shard").dataset_shard(dataset_name)


def get_context() -> TrainContext:
    """This worker's ranks, and the training that it belongs to."""
    return current("get_context").context


def get_world_rank() -> int:
    """This worker's place among all workers, from 0."""
    return current("get_world_rank").context.world_rank


def get_world_size() -> int:
    """How many workers train together."""
    return current("get_world_size").context.world_size


def get_local_rank() -> int:
    """This worker's place among the workers of its node, from 0."""
    return current("get_local_rank").context.local_rank


def get_local_world_size() -> int:
    """How many workers are on this node."""
    return current("get_local_world_size").context.local_world_size


def get_node_rank() -> int:
    """This node's place among the nodes, from 0."""
    return current("get_node_rank").context.node_rank


def get_trial_name() -> str:
    """The training's name."""
    return current("get_trial_name").context.trial_name


def get_trial_id() -> str:
    """The training's id."""
    return current("get_trial_id").context.trial_id


def get_trial_dir() -> str:
    """The training's local log directory."""
    return current("get_trial_dir").context.trial_dir


def get_trial_resources() -> dict[str, float]:
    """What the training has reserved: all its workers together, and the trainer."""
    return current("get_trial_resources").context.get_trial_resources()


def get_experiment_name() -> str:
    """The MLflow experiment."""
    return current("get_experiment_name").context.experiment_name


def get_storage_path() -> str:
    """Where the experiment's artifacts are kept."""
    return current("get_storage_path").context.storage_path


world_rank = get_world_rank
world_size = get_world_size
local_rank = get_local_rank
