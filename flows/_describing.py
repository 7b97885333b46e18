"""What a flow run is called in the Prefect UI, and its tags: they say what is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run

from trainlib.tasks._background import BackgroundSender
from trainlib.trainer import DataParallelTrainer

__all__ = ["describe_flow_run", "kept_name", "tags_of", "title_of", "what_of"]

# A training function without a framework around it.
_NO_FRAMEWORK = "function"
# The flows whose runs are called after what they train. Others, such as pipelines, have names of their own.
_ONLY_TRAIN = ("train", "sweep", "resume", "fork")


def kept_name(first: Callable[[], str]) -> Callable[[], str]:
    """What a flow run is called when it starts. One that goes on, after Resume or Retry, keeps the name that it has.

    Args:
        first: gives the name for the first time, until it is known what is trained.
    """

    def name() -> str:
        return str(flow_run.name) if flow_run.run_count else first()

    return name


def what_of(trainer: DataParallelTrainer) -> str:
    """What is trained: the name of the run, or of the training function."""
    function = trainer.train_loop_per_worker
    name = getattr(function, "__name__", None) or type(function).__name__
    return trainer.run_config.name or (type(trainer).__name__ if name == "<lambda>" else name)


def title_of(trainer: DataParallelTrainer) -> str:
    """What runs of a trainer are called, e.g. ``train_digits · torch x2``."""
    framework, workers = trainer.backend_config.framework, trainer.scaling_config.num_workers
    if framework == _NO_FRAMEWORK:
        return f"{what_of(trainer)} · {workers} worker{'s' if workers != 1 else ''}"
    return f"{what_of(trainer)} · {framework} x{workers}"


def tags_of(trainer: DataParallelTrainer) -> list[str]:
    """The tags of runs of a trainer, by which people filter: the framework and the experiment."""
    framework, experiment = trainer.backend_config.framework, trainer.run_config.experiment_name
    tags = [] if framework == _NO_FRAMEWORK else [framework]
    return [*tags, f"experiment:{experiment}"] if experiment else tags


def describe_flow_run(title: str, tags: Sequence[str]) -> str:
    """Give the present flow run further tags, and a name if it does nothing but train. Does not wait. Gives its name."""
    name = title if flow_run.flow_name in _ONLY_TRAIN else None
    all_tags = list(dict.fromkeys([*(flow_run.tags or []), *tags]))
    BackgroundSender().send("description", partial(_update, UUID(str(flow_run.id)), name, all_tags))
    return name or str(flow_run.name)


def _update(flow_run_id: UUID, name: str | None, tags: list[str]) -> None:
    with get_client(sync_client=True) as client:
        client.update_flow_run(flow_run_id, name=name, tags=tags)
