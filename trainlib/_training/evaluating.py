"""Evaluating a checkpoint on rows that its training has not seen: on one Ray worker, set up as for the training."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainlib import session
from trainlib._execution.events import Note, Output
from trainlib._execution.metrics import as_numbers
from trainlib._execution.plan import AttemptPlan
from trainlib._execution.worker_session import Assignment
from trainlib._registry.store import current_store
from trainlib.checkpoint import Checkpoint
from trainlib.config import CheckpointConfig
from trainlib.errors import InvalidArgumentError
from trainlib.session import TrainContext

if TYPE_CHECKING:
    import ray.data

    from trainlib.trainer import DataParallelTrainer

__all__ = ["Evaluate", "Evaluation"]

Evaluate = Callable[[Checkpoint, "ray.data.Dataset"], Mapping[str, Any]]
"""What a user writes: it gets a checkpoint and rows, and gives metrics."""

_DATASET = "test"


@dataclass(frozen=True)
class Evaluation:
    """How checkpoints are evaluated: by which function, on which rows, and with what resources."""

    function: Evaluate
    rows: str
    """Where the rows are, as they were read: the preprocessor of each checkpoint is applied to them."""
    trainer: DataParallelTrainer
    """The worker has the framework and the resources of one of its workers."""

    def of(self, location: str, say: Callable[[str], None]) -> dict[str, float]:
        """The metrics of a checkpoint of the registry.

        Args:
            location: Where its files are.
            say: Shows a line: what is waited for, and what the function prints.

        Raises:
            TrainingFailedError: the function raised, or its worker was lost.
            CapacityError: there is no room for the worker.
        """
        from trainlib._execution.attempt import Attempt

        checkpoint = Checkpoint(location, trust=True).require()  # a training of this registry has written it
        with Attempt(self._plan(checkpoint)) as attempt:
            for event in attempt:
                if isinstance(event, (Note, Output)):
                    say(event.text)
        return attempt.returned[0]  # type: ignore[no-any-return]

    def _plan(self, checkpoint: Checkpoint) -> AttemptPlan:
        from trainlib._data.config import DataConfig
        from trainlib._data.datasets import inspect_sources
        from trainlib._data.ingest import Ingest

        gang = self.trainer.settings.gang.model_copy(update={"num_workers": 1})
        datasets = {_DATASET: self.rows}
        function = self.function
        return AttemptPlan(
            number=1,
            scaling=gang,
            backend=self.trainer.backend_config,
            function=lambda: _evaluate(function, checkpoint),
            assignment=Assignment(
                context=TrainContext(
                    trial_name="evaluate", trial_resources=gang.total_resources, run_id=f"evaluate-{uuid.uuid4().hex}"
                ),
                iterations_done=0,
                next_checkpoint=0,
                resume_from=checkpoint,
                checkpoint_config=CheckpointConfig(num_to_keep=0),
                staging=None,
                shares_disk=False,
                in_step=False,
                environment=current_store().environment,
                import_path=[os.path.abspath(path) for path in sys.path],
            ),
            spares=False,
            ingest=Ingest(
                datasets,
                sources=inspect_sources(datasets),
                config=DataConfig(datasets_to_split=[]),
                preprocessor=None,
            ),
        )


def _evaluate(function: Evaluate, checkpoint: Checkpoint) -> dict[str, float]:
    """What the worker does."""
    shard = session.get_dataset_shard(_DATASET)
    assert shard is not None
    dataset = shard.whole()
    preprocessor = checkpoint.get_preprocessor()
    if preprocessor is not None:
        dataset = preprocessor.transform(dataset)
    found = function(checkpoint, dataset)
    if not isinstance(found, Mapping):
        name = getattr(function, "__name__", repr(function))
        raise InvalidArgumentError(
            f"the evaluation function {name} returned a {type(found).__name__}: return a dict of metrics, e.g. "
            "{'accuracy': 0.9}"
        )
    return as_numbers(dict(found))
