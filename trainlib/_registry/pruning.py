"""Deleting checkpoints that a policy gives up, and what processes that ended halfway have left.

A checkpoint that goes is marked first, and does not count from then on; then its files are deleted, and then its logged model. So
whoever is interrupted leaves nothing that still counts, and the next pruning, or the next process that opens the run, removes the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._registry import tags
from trainlib._registry.checkpoint_shelf import withdraw
from trainlib._registry.client import connect
from trainlib._registry.listing import RunState, experiments_named
from trainlib._registry.logged_models import as_saved, checkpoint_name, is_ready, logged_models
from trainlib._registry.ownership import Occupancy, occupancy
from trainlib._registry.prune_policy import DatedCheckpoint, Policy, RunCheckpoints, choose
from trainlib._registry.references import forked_from, registered_checkpoints
from trainlib._registry.retention import SavedCheckpoint
from trainlib._registry.store import current_store
from trainlib.errors import InvalidArgumentError

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import LoggedModel, Run

__all__ = ["Expendable", "PruneResult", "prune"]


@dataclass(frozen=True)
class Expendable:
    """A checkpoint to be deleted."""

    run_id: str
    run_name: str
    checkpoint: SavedCheckpoint
    saved: datetime
    size: int
    """Of its files, in bytes."""
    is_leftover: bool
    """Whether it was never complete, or was being deleted already, when a process ended."""


@dataclass(frozen=True)
class PruneResult:
    """What was deleted, or, in a dry run, what would be."""

    deleted: tuple[Expendable, ...]
    kept: int
    """How many checkpoints stay."""
    is_dry_run: bool

    @property
    def freed(self) -> int:
        """How many bytes that is."""
        return sum(each.size for each in self.deleted)

    @property
    def summary(self) -> str:
        """What was done, in words.

        Example:
            >>> PruneResult((), 3, True).summary
            'A dry run: 0 checkpoints would be deleted, 0.0 MB. 3 stay.'
        """
        many, size = len(self.deleted), f"{self.freed / 1e6:.1f} MB"
        if self.is_dry_run:
            return f"A dry run: {many} checkpoints would be deleted, {size}. {self.kept} stay."
        return f"{many} checkpoints were deleted, and {size} freed. {self.kept} stay."


def prune(policy: Policy, *, dry_run: bool = True, say: Callable[[str], None] = lambda text: None) -> PruneResult:
    """Delete the checkpoints that a policy gives up. In a dry run, which is the default, only find out which these are.

    Raises:
        RunNotFoundError: there is no such experiment.
        InvalidArgumentError: no checkpoint has the metric that the policy goes by.
    """
    store = current_store()
    with store.in_use():
        client = connect(store)
        found = _Registry(client, policy)
        expendable = [each for run in found.runs for each in found.expendable_of(run)]
        kept = found.count - sum(not each.is_leftover for each in expendable)
        deleted = []
        for each in expendable:
            if dry_run:
                deleted.append(each)
            elif _may_still_go(client, each):
                _delete(client, each)
                deleted.append(each)
                say(f"deleted {checkpoint_name(each.checkpoint.index)} of {each.run_name!r}: {each.size} bytes")
    return PruneResult(tuple(deleted), kept + len(expendable) - len(deleted), dry_run)


class _Registry:
    """The checkpoints of the registry, as a policy looks at them."""

    def __init__(self, client: MlflowClient, policy: Policy) -> None:
        self._client = client
        self._policy = policy
        self._now = datetime.now(UTC)
        self._runs: dict[str, Run] = {}
        models: dict[str, list[LoggedModel]] = defaultdict(list)
        for experiment_id in experiments_named(client, policy.experiment):
            for model in logged_models(client, experiment_id):
                if tags.CHECKPOINT_INDEX in model.tags:
                    models[str(model.source_run_id)].append(model)
        self._models = models
        self.runs = [self._checkpoints_of(run_id) for run_id in models]
        """The runs that have checkpoints, or left some."""
        self.count = sum(len(run.checkpoints) for run in self.runs)
        self._require_metric()
        self._registered = registered_checkpoints(client, [each.saved for run in self.runs for each in run.checkpoints])
        self._forked = forked_from(client)

    def expendable_of(self, run: RunCheckpoints) -> Iterator[Expendable]:
        """What goes of a run: what the policy gives up, and what was left unfinished, unless the run is at work."""
        if run.is_running:
            return
        fate = choose(run, self._policy, registered=self._registered, forked=self._forked, now=self._now)
        for model in self._models[run.run_id]:
            if not is_ready(model) or fate[model.model_id] is None:
                saved = as_saved(model, self._client.tracking_uri)
                yield Expendable(
                    run_id=run.run_id,
                    run_name=run.name,
                    checkpoint=saved,
                    saved=_time_of(model),
                    size=storage.size_of(saved.location),
                    is_leftover=not is_ready(model),
                )

    def _checkpoints_of(self, run_id: str) -> RunCheckpoints:
        run = self._run(run_id)
        around = [run]
        if (parent := run.data.tags.get(tags.MLFLOW_PARENT)) is not None:
            around.append(self._run(parent))  # a trial goes on when its sweep does
        saved = [
            DatedCheckpoint(as_saved(model, self._client.tracking_uri), _time_of(model))
            for model in self._models[run_id]
            if is_ready(model)
        ]
        return RunCheckpoints(
            run_id=run_id,
            name=run.info.run_name,
            is_running=any(is_at_work(each) for each in around),
            is_over=all(RunState.of(each) is RunState.FINISHED for each in around),
            checkpoints=tuple(sorted(saved, key=lambda each: each.saved.index)),
        )

    def _run(self, run_id: str) -> Run:
        if run_id not in self._runs:
            self._runs[run_id] = self._client.get_run(run_id)
        return self._runs[run_id]

    def _require_metric(self) -> None:
        metric = self._policy.metric
        known = {name for run in self.runs for each in run.checkpoints for name in each.saved.metrics}
        if metric is not None and self.count and metric not in known:
            raise InvalidArgumentError(
                f"metric: no checkpoint was reported with {metric!r}; their metrics are: {', '.join(sorted(known)) or 'none'}"
            )


def is_at_work(run: Run) -> bool:
    """Whether a process works on a run, or may: one on another machine cannot be asked."""
    return occupancy(run) in (Occupancy.LIVE, Occupancy.UNKNOWN)


def _may_still_go(client: MlflowClient, each: Expendable) -> bool:
    """Whether nobody has begun to need a checkpoint meanwhile: it may have taken long to delete those before it."""
    run = client.get_run(each.run_id)
    parent = run.data.tags.get(tags.MLFLOW_PARENT)
    if is_at_work(run) or (parent is not None and is_at_work(client.get_run(parent))):
        return False
    needed = registered_checkpoints(client, [each.checkpoint])
    if not each.is_leftover:  # nobody can start from what is not complete
        needed |= forked_from(client)
    return each.checkpoint.model_id not in needed


def _delete(client: MlflowClient, each: Expendable) -> None:
    saved = each.checkpoint
    client.set_logged_model_tags(saved.model_id, {tags.DELETED: "true"})
    is_local = storage.local_path(saved.location) is not None
    storage.delete(saved.location.rsplit("/", 2)[0] if is_local else saved.location)
    client.delete_logged_model(saved.model_id)
    for folder in _folders(client.get_run(each.run_id), Path(saved.location)):
        withdraw(folder, saved)


def _folders(run: Run, location: Path) -> Iterator[Path]:
    """The folders on this machine that may be those of a training, or of a trial in that of its sweep."""
    name = f"*_{run.info.run_id[:8]}"
    # The latter are RunConfig.storage_path, if it has one.
    for root in {storage.home() / "runs", *list(location.parents)[3:5]}:
        yield from root.glob(name)
        yield from root.glob(f"*/{name}")
        if (own := run.data.tags.get(tags.LOG_FOLDER)) is not None:
            yield root / own


def _time_of(model: LoggedModel) -> datetime:
    return datetime.fromtimestamp(model.creation_timestamp / 1000, UTC)
