"""RaySGD's trainer: made once for a backend, then given one training function after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _rooms as rooms
from trainlib import _storage as storage
from trainlib._execution.backend import BackendConfig
from trainlib._settings import TrainLoop
from trainlib.checkpoint import ADDED_KEYS, Checkpoint
from trainlib.config import FailureConfig, RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError
from trainlib.result import Result
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from trainlib.callbacks import Callback
    from trainlib.tune._trainable import TunedByConfig

__all__ = ["Trainer"]


class Trainer:
    """Runs training functions on a number of workers, and gives back what each worker returned.

    A front for the trainers of the frameworks: each :meth:`run` is a ``fit()`` of such a trainer, with its Prefect flow
    run and its MLflow run, and starts anew unless it is given a checkpoint.

    Example:
        >>> from trainlib.sgd import Trainer
        >>> def train_func(config):
        ...     return list(range(config["num_epochs"]))
        >>> trainer = Trainer(backend="torch", num_workers=2)
        >>> trainer.start()  # doctest: +SKIP
        >>> trainer.run(train_func, config={"num_epochs": 2})  # doctest: +SKIP
        [[0, 1], [0, 1]]
        >>> trainer.shutdown()
    """

    def __init__(
        self,
        backend: str | BackendConfig,
        num_workers: int = 1,
        use_gpu: bool = False,
        resources_per_worker: dict[str, float] | None = None,
        logdir: str | os.PathLike[str] | None = None,
        max_retries: int = 3,
    ) -> None:
        """A trainer.

        Args:
            backend: ``"torch"``, ``"tensorflow"``, ``"horovod"``, or the settings of one, e.g. ``TorchConfig()``.
            num_workers: workers that train together.
            use_gpu: whether each gets a GPU.
            resources_per_worker: what each reserves. Default: one CPU, and one GPU with ``use_gpu``.
            logdir: folder or URI where runs are kept, with their checkpoints; a relative path is one below ``runs`` in
                trainlib's home folder. Default: that folder.
            max_retries: attempts after a lost worker. -1 retries for ever.
        """
        self._kind, self._backend = _chosen(backend)
        _require_at_least("num_workers", num_workers, 1)
        _require_at_least("max_retries", max_retries, -1)
        self._scaling = ScalingConfig(
            num_workers=num_workers, use_gpu=use_gpu, resources_per_worker=resources_per_worker
        )
        self._failures = FailureConfig(max_failures=max_retries)
        self._storage_path = _below_runs(logdir) if logdir is not None else None
        self.logdir = self._storage_path or _below_runs("")
        """The folder that each run has its own folder in."""
        self._started = False
        self.latest_result: Result | None = None
        """All that there is to know of the latest run, e.g. its metrics and its page in MLflow. None if it failed."""
        self._given: Checkpoint | None = None
        # A framework that is not installed is told here, and not when workers have been started for it.
        self._ready = self._made(lambda: None)

    # -- running ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect to Ray and start the workers, behind whatever comes next. They reserve nothing until they train.

        Raises:
            ConnectionFailedError: nobody answers at ``RAY_ADDRESS``.
        """
        from trainlib._execution import cluster, warm_up

        cluster.require_answer()
        warm_up.start(self._ready.scaling_config, self._ready.backend_config)
        self._started = True

    def run(
        self,
        train_func: TrainLoop,
        config: dict[str, Any] | None = None,
        callbacks: Sequence[Callback] | None = None,
        dataset: Any = None,
        checkpoint: dict[str, Any] | Checkpoint | None = None,
    ) -> list[Any]:
        """Run a training function on all workers; gives what it returned, by rank.

        Args:
            train_func: the training function, with no parameter or one, the config.
            config: what it is called with.
            callbacks: of :mod:`trainlib.callbacks`. They see what rank 0 reports.
            dataset: what ``get_dataset_shard()`` gives a share of; of several, by name, ``train`` is split and others are
                whole on every worker.
            checkpoint: what ``load_checkpoint()`` gives at first.

        Raises:
            RuntimeError: the trainer has not been started.
            TrainingFailedError: an attempt failed, and ``max_retries`` is spent. Its ``__cause__`` is what the failing
                rank raised.
        """
        if not self._started:
            raise RuntimeError(
                "the trainer is not running: call start() before run(), and shutdown() after the last run"
            )
        if checkpoint is not None and not isinstance(checkpoint, (dict, Checkpoint)):
            raise InvalidArgumentError(
                f"checkpoint is a {type(checkpoint).__name__}: pass a dict, or a trainlib.Checkpoint"
            )
        given = Checkpoint.from_dict(checkpoint) if isinstance(checkpoint, dict) else checkpoint
        trainer = self._made(train_func, config, callbacks=callbacks, dataset=dataset, checkpoint=given)
        self.latest_result, self._given = None, given
        self.latest_result = trainer.fit()
        return self.latest_result.returned

    def shutdown(self) -> None:
        """No more runs. The workers, which are shared with other trainers, end when they have been idle for a minute."""
        self._started = False

    def to_tune_trainable(self, train_func: TrainLoop, dataset: Any = None) -> TunedByConfig:
        """What ``tune.run(trainable, config=...)`` and ``tune.Tuner(trainable, param_space=...)`` take, with search spaces
        for what the training function gets. It does not have to be started: each trial has workers of its own.

        Example:
            >>> from trainlib import tune
            >>> def train_func(config):
            ...     report(output=config["input"])
            >>> trainable = Trainer("torch", num_workers=2).to_tune_trainable(train_func)
            >>> tune.run(trainable, config={"input": tune.grid_search([1, 2])})  # doctest: +SKIP
        """
        from trainlib.tune._trainable import TunedByConfig

        return TunedByConfig(self._made(train_func, dataset=dataset))

    # -- what the latest run left -----------------------------------------------------------------------

    @property
    def latest_run_dir(self) -> str | None:
        """The latest run's folder."""
        return self.latest_result.log_dir if self.latest_result is not None else None

    @property
    def latest_checkpoint(self) -> dict[str, Any] | None:
        """What the latest run saved last; if it saved nothing, what it was given."""
        checkpoint = self._latest_saved or self._given
        if checkpoint is None:
            return None
        return {key: value for key, value in checkpoint.to_dict().items() if key not in ADDED_KEYS}

    @property
    def latest_checkpoint_path(self) -> str | None:
        """The directory or URI of what the latest run saved last."""
        return self._latest_saved.path if self._latest_saved is not None else None

    @property
    def _latest_saved(self) -> Checkpoint | None:
        return self.latest_result.checkpoint if self.latest_result is not None else None

    # -- inside -----------------------------------------------------------------------------------------

    def _made(
        self,
        train_func: TrainLoop,
        config: dict[str, Any] | None = None,
        *,
        callbacks: Sequence[Callback] | None = None,
        dataset: Any = None,
        checkpoint: Checkpoint | None = None,
    ) -> DataParallelTrainer:
        """The framework's own trainer for one training function."""
        if not callable(train_func):
            raise InvalidArgumentError(f"train_func is a {type(train_func).__name__}: pass a function")
        if config is not None and not isinstance(config, dict):
            raise InvalidArgumentError(f"config is a {type(config).__name__}: pass a dict")
        framework_settings: dict[str, Any] = {self._kind.room.config_argument: self._backend}
        return self._kind(
            train_func,
            train_loop_config=config,
            scaling_config=self._scaling,
            run_config=RunConfig(storage_path=self._storage_path, callbacks=callbacks, failure_config=self._failures),
            datasets=dataset if dataset is None or isinstance(dataset, dict) else {"train": dataset},
            resume_from_checkpoint=checkpoint,
            **framework_settings,
        )


def _chosen(backend: Any) -> tuple[type[DataParallelTrainer], BackendConfig | None]:
    """The trainer for a backend, and its settings if they were passed."""
    if isinstance(backend, BackendConfig):
        return rooms.room_of(backend).trainer_class(), backend
    names = ", ".join(map(repr, rooms.ROOMS))
    if not isinstance(backend, str):
        raise InvalidArgumentError(
            f"backend is a {type(backend).__name__}: pass {names}, or settings such as TorchConfig()"
        )
    if backend not in rooms.ROOMS:
        raise ValueError(f"backend is {backend!r}: pass {names}, or settings such as TorchConfig()")
    return rooms.load(backend).trainer_class(), None


def _below_runs(path: str | os.PathLike[str]) -> str:
    """A relative path as one below where runs are kept; an absolute one, or a URI, as it is."""
    given = os.fspath(path)
    return given if "://" in given else str(storage.home() / "runs" / Path(given).expanduser())


def _require_at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} is {value!r}: pass a whole number that is {least} or more")
