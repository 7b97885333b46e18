"""RaySGD's trainer: created once for a backend, then called with one training function after another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib import _rooms as rooms
from trainlib._execution.backend import BackendConfig
from trainlib._ray_objects import described
from trainlib._settings import TrainLoop
from trainlib.checkpoint import ADDED_KEYS, Checkpoint
from trainlib.config import CheckpointConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError, TrainingFailedError
from trainlib.result import Result
from trainlib.sgd._iterator import SGDIterator
from trainlib.sgd._latest_run import LatestRun
from trainlib.sgd._log_folders import LogFolders
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
            logdir: the folder of this trainer's runs. A relative path is relative to ``runs`` in trainlib's home folder.
                Default: ``sgd_<date>`` there, a new one for each trainer. A URI is where checkpoints are kept; logs are
                then in the default folder.
            max_retries: how often a training is retried after a lost worker. -1 retries without limit. What the training
                function raises is not retried.

        Raises:
            ImportError: the framework is not installed.
        """
        self._kind, self._backend = _chosen(backend)
        _require_at_least("num_workers", num_workers, 1)
        _require_at_least("max_retries", max_retries, -1)
        self._scaling = ScalingConfig(
            num_workers=num_workers, use_gpu=use_gpu, resources_per_worker=resources_per_worker
        )
        self._failures = FailureConfig(max_failures=max_retries, retry_user_errors="never")
        # Made now, so that a framework that is not installed is an error here, before workers are started for it.
        self._any_trainer = self._trainer_for(lambda: None, storage_path=None)
        self._folders = LogFolders.of(logdir, datetime.now())
        self._started = False
        self._iterator: SGDIterator | None = None
        self.latest_result: Result | None = None
        """The Result of the latest run, with its metrics and its page in MLflow. None if there is none yet."""
        self.latest_run_dir: Path | None = None
        """The latest run's folder, e.g. ``run_001`` in :attr:`logdir`. None before the first run."""
        self._given: Checkpoint | None = None
        self._latest_run = LatestRun()

    @property
    def logdir(self) -> Path:
        """This trainer's folder, which contains a folder for each run."""
        return self._folders.logdir

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
        checkpoint: dict[str, Any] | Checkpoint | str | os.PathLike[str] | None = None,
        checkpoint_strategy: CheckpointConfig | None = None,
    ) -> list[Any]:
        """Run a training function on all workers.

        Args:
            train_func: the training function. It has no parameter, or one, the config.
            config: what the training function is called with.
            callbacks: callbacks from :mod:`trainlib.sgd`, which hear what all ranks report, or from
                :mod:`trainlib.callbacks`.
            dataset: a dataset that is split across the workers, or several by name. Of several, ``train`` is split and
                the others are whole on every worker.
            checkpoint: what ``load_checkpoint()`` gives at first: a dict, a Checkpoint, or the path of a saved one.
            checkpoint_strategy: which checkpoints stay on disk. Default: all of them.

        Returns:
            What the function returned on each worker, by rank.

        Raises:
            RuntimeError: the trainer has not been started.
            TrainingFailedError: an attempt failed, and no retries are left. Its ``__cause__`` is what the failing rank
                raised, and its ``result`` is the Result so far, with metrics and the newest checkpoint.
        """
        self._require_ready("run")
        return self._run(self._run_trainer(train_func, config, callbacks, dataset, checkpoint, checkpoint_strategy))

    def run_iterator(
        self,
        train_func: TrainLoop,
        config: dict[str, Any] | None = None,
        dataset: Any = None,
        checkpoint: dict[str, Any] | Checkpoint | str | os.PathLike[str] | None = None,
        checkpoint_strategy: CheckpointConfig | None = None,
    ) -> SGDIterator:
        """Run a training function on all workers, and iterate over what they report. The arguments are those of :meth:`run`.

        Example::

            iterator = trainer.run_iterator(train_func)
            for results in iterator:
                print(results)
            returned = iterator.get_final_results()
        """
        self._require_ready("run_iterator")
        trainer = self._run_trainer(train_func, config, None, dataset, checkpoint, checkpoint_strategy)
        trainer.inspect()  # what is wrong with it is an error here, and not when results are asked for

        def run(stream: Callback) -> list[Any]:
            return self._run(trainer, stream)

        self._iterator = SGDIterator(run)
        return self._iterator

    def shutdown(self) -> None:
        """Allow no more runs. The workers are shared with other trainers, and end after a minute without work.

        A run that is iterated over is ended.
        """
        self._started = False
        if self._iterator is not None:
            self._iterator.close()

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

        return TunedByConfig(self._trainer_for(train_func, dataset=dataset, storage_path=self._folders.storage_path))

    # -- the latest run ---------------------------------------------------------------------------------

    @property
    def latest_checkpoint(self) -> dict[str, Any] | None:
        """The last checkpoint that the latest run has saved, also while it goes on. If it saved none, the one it was given.

        With ``CheckpointStrategy(num_to_keep=0)``, the last one is known when the run has ended.
        """
        checkpoint = self._latest_saved or self._given
        if checkpoint is None:
            return None
        return {key: value for key, value in checkpoint.to_dict().items() if key not in ADDED_KEYS}

    @property
    def latest_checkpoint_dir(self) -> Path | None:
        """The folder that shows the latest run's checkpoints. None before the first run, or if it has saved none."""
        from trainlib._registry.checkpoint_shelf import FOLDER  # `import trainlib` does not need the registry

        folder = self.latest_run_dir / FOLDER if self.latest_run_dir is not None else None
        return folder if folder is not None and folder.is_dir() else None

    @property
    def latest_checkpoint_path(self) -> Path | str | None:
        """The last checkpoint that the latest run saved, in :attr:`latest_checkpoint_dir`. A URI, if it is not on this machine.

        None if there is none, or if ``CheckpointStrategy(num_to_keep=0)`` kept it in memory.
        """
        saved, folder = self._latest_saved, self.latest_checkpoint_dir
        if saved is None or saved.uri is None:
            return None
        found = folder / Path(saved.path).name if folder is not None else None
        return found if found is not None and found.exists() else saved.path

    @property
    def _latest_saved(self) -> Checkpoint | None:
        return self.latest_result.checkpoint if self.latest_result is not None else self._latest_run.saved

    # -- inside -----------------------------------------------------------------------------------------

    def _require_ready(self, method: str) -> None:
        if not self._started:
            raise RuntimeError(
                f"the trainer is not running: call start() before {method}(), and shutdown() after the last run"
            )
        if self._iterator is not None and not self._iterator.is_finished():
            raise RuntimeError(
                "the run of run_iterator() has not been iterated over to its end. Do that first, or call its "
                "get_final_results(force=True), or its close()"
            )

    def _run_trainer(
        self,
        train_func: TrainLoop,
        config: dict[str, Any] | None,
        callbacks: Sequence[Callback] | None,
        dataset: Any,
        checkpoint: dict[str, Any] | Checkpoint | str | os.PathLike[str] | None,
        strategy: CheckpointConfig | None,
    ) -> DataParallelTrainer:
        """The framework's own trainer for one run."""
        if strategy is not None and not isinstance(strategy, CheckpointConfig):
            raise InvalidArgumentError(
                f"checkpoint_strategy is a {type(strategy).__name__}: pass a trainlib.sgd.CheckpointStrategy"
            )
        return self._trainer_for(
            train_func,
            config,
            callbacks=callbacks,
            dataset=dataset,
            checkpoint=_as_checkpoint(checkpoint),
            strategy=strategy,
            storage_path=self._folders.storage_path,
        )

    def _run(self, trainer: DataParallelTrainer, *more: Callback) -> list[Any]:
        """Run a trainer in a folder of its own. What it leaves is the latest run's, however it ends."""
        folder = self._folders.next_run()
        latest = LatestRun()
        callbacks = [latest, *(trainer.run_config.callbacks or ()), *more]
        trainer = trainer.copy_with(run_config=trainer.run_config.model_copy(update={"callbacks": callbacks}))
        trainer.log_folder = self._folders.log_folder(folder)
        trainer.first_checkpoint = 1
        self.latest_result, self.latest_run_dir, self._given = None, folder, trainer.resume_from_checkpoint
        self._latest_run = latest
        try:
            self.latest_result = trainer.fit()
        except TrainingFailedError as failure:
            self.latest_result = getattr(failure, "result", None)
            raise
        finally:
            if not latest.was_opened:
                self.latest_run_dir = None
                with suppress(OSError):
                    folder.rmdir()
        return self.latest_result.returned

    def _trainer_for(
        self,
        train_func: TrainLoop,
        config: dict[str, Any] | None = None,
        *,
        callbacks: Sequence[Callback] | None = None,
        dataset: Any = None,
        checkpoint: Checkpoint | None = None,
        strategy: CheckpointConfig | None = None,
        storage_path: str | None,
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
            run_config=RunConfig(
                storage_path=storage_path,
                callbacks=callbacks,
                failure_config=self._failures,
                checkpoint_config=strategy or CheckpointConfig(),
            ),
            datasets=dataset if dataset is None or isinstance(dataset, dict) else {"train": dataset},
            resume_from_checkpoint=checkpoint,
            **framework_settings,
        )


def _as_checkpoint(given: Any) -> Checkpoint | None:
    """What a run was given to start from."""
    if given is None or isinstance(given, Checkpoint):
        return given
    if isinstance(given, dict):
        return Checkpoint.from_dict(given)
    if isinstance(given, (str, os.PathLike)):
        return Checkpoint(os.fspath(given)).require()
    raise InvalidArgumentError(
        f"checkpoint is a {type(given).__name__}: pass a dict, a trainlib.Checkpoint, or the path of a saved one"
    )


def _chosen(backend: Any) -> tuple[type[DataParallelTrainer], BackendConfig | None]:
    """The trainer for a backend, and its settings if they were passed."""
    backend = rooms.taken_from_ray(backend)
    if isinstance(backend, BackendConfig):
        return rooms.room_of(backend).trainer_class(), backend
    known = rooms.for_functions()
    names = ", ".join(map(repr, known))
    if not isinstance(backend, str):
        raise InvalidArgumentError(
            f"backend is {described(backend)}: pass {names}, or settings such as trainlib.torch.TorchConfig()"
        )
    if backend not in known:
        raise ValueError(f"backend is {backend!r}: pass {names}, or settings such as TorchConfig()")
    return rooms.load(backend).trainer_class(), None


def _require_at_least(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidArgumentError(f"{name} is {value!r}: pass a whole number that is {least} or more")
