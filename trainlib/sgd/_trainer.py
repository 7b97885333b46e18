"""RaySGD's trainer: created once for a backend, then called with one training function after another."""

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
    """Runs training functions on a number of workers, and returns what each worker returned.

    Each :meth:`run` is a ``fit()`` of the framework's own trainer, such as ``TorchTrainer``, with a Prefect flow run and an
    MLflow run of its own. It starts from the beginning unless it is given a checkpoint.

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
        """Choose a framework and the workers. Nothing is started before :meth:`start`.

        Args:
            backend: a framework's name, e.g. ``"torch"``, ``"tensorflow"`` or ``"horovod"``, or its settings, e.g.
                ``TorchConfig()``.
            num_workers: how many workers train together.
            use_gpu: whether each worker gets a GPU.
            resources_per_worker: what each worker reserves. Default: one CPU, and one GPU with ``use_gpu``.
            logdir: folder or URI for the runs and their checkpoints. A relative path is relative to ``runs`` in trainlib's
                home folder. Default: that folder.
            max_retries: how often a training is retried after a lost worker. -1 retries without limit.

        Raises:
            ImportError: the framework is not installed.
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
        """The folder that contains a folder for each run."""
        self._started = False
        self.latest_result: Result | None = None
        """The Result of the latest run, with its metrics and its page in MLflow. None if the run failed."""
        self._given: Checkpoint | None = None
        # Made now, so that a framework that is not installed is an error here, before workers are started for it.
        self._any_trainer = self._trainer_for(lambda: None)

    # -- running ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect to Ray and start the workers. They reserve nothing until they train.

        Raises:
            ConnectionFailedError: no Ray cluster answers at ``RAY_ADDRESS``.
        """
        from trainlib._execution import cluster, warm_up

        cluster.require_answer()
        warm_up.start(self._any_trainer.scaling_config, self._any_trainer.backend_config)
        warm_up.wait()
        self._started = True

    def run(
        self,
        train_func: TrainLoop,
        config: dict[str, Any] | None = None,
        callbacks: Sequence[Callback] | None = None,
        dataset: Any = None,
        checkpoint: dict[str, Any] | Checkpoint | None = None,
    ) -> list[Any]:
        """Run a training function on all workers.

        Args:
            train_func: the training function. It has no parameter, or one, the config.
            config: what the training function is called with.
            callbacks: callbacks from :mod:`trainlib.callbacks`. They see what rank 0 reports.
            dataset: a dataset that is split across the workers, or several by name. Of several, ``train`` is split and
                the others are whole on every worker.
            checkpoint: what ``load_checkpoint()`` gives at first.

        Returns:
            What the function returned on each worker, by rank.

        Raises:
            RuntimeError: the trainer has not been started.
            TrainingFailedError: an attempt failed, and no retries are left. Its ``__cause__`` is what the failing rank
                raised.
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
        trainer = self._trainer_for(train_func, config, callbacks=callbacks, dataset=dataset, checkpoint=given)
        self.latest_result, self._given = None, given
        self.latest_result = trainer.fit()
        return self.latest_result.returned

    def shutdown(self) -> None:
        """Allow no more runs. The workers are shared with other trainers, and end after a minute without work."""
        self._started = False

    def to_tune_trainable(self, train_func: TrainLoop, dataset: Any = None) -> TunedByConfig:
        """A trainable for ``tune.run(trainable, config=...)`` or ``tune.Tuner(trainable, param_space=...)``.

        The search space is that of the training function's config. The trainer does not have to be started, because each
        trial has workers of its own.

        Example:
            >>> from trainlib import tune
            >>> def train_func(config):
            ...     report(output=config["input"])
            >>> trainable = Trainer("torch", num_workers=2).to_tune_trainable(train_func)
            >>> tune.run(trainable, config={"input": tune.grid_search([1, 2])})  # doctest: +SKIP
        """
        from trainlib.tune._trainable import TunedByConfig

        return TunedByConfig(self._trainer_for(train_func, dataset=dataset))

    # -- the latest run ---------------------------------------------------------------------------------

    @property
    def latest_run_dir(self) -> str | None:
        """The latest run's folder."""
        return self.latest_result.log_dir if self.latest_result is not None else None

    @property
    def latest_checkpoint(self) -> dict[str, Any] | None:
        """The last checkpoint of the latest run. If it saved none, the checkpoint that it was given."""
        checkpoint = self._latest_saved or self._given
        if checkpoint is None:
            return None
        return {key: value for key, value in checkpoint.to_dict().items() if key not in ADDED_KEYS}

    @property
    def latest_checkpoint_path(self) -> str | None:
        """The directory or URI of the last checkpoint that the latest run saved."""
        return self._latest_saved.path if self._latest_saved is not None else None

    @property
    def _latest_saved(self) -> Checkpoint | None:
        return self.latest_result.checkpoint if self.latest_result is not None else None

    # -- inside -----------------------------------------------------------------------------------------

    def _trainer_for(
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
    """A relative path is relative to the folder of all runs. An absolute path or a URI stays as it is."""
    given = os.fspath(path)
    return given if "://" in given else str(storage.home() / "runs" / Path(given).expanduser())


def _require_at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} is {value!r}: pass a whole number that is {least} or more")
