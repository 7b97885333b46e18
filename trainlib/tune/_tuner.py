"""The Tuner: a trainer, what is tried with it, and how."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from trainlib.config import RunConfig
from trainlib.errors import RunNotFoundError
from trainlib.trainer import DataParallelTrainer
from trainlib.tune._config import TuneConfig
from trainlib.tune._plan import SweepPlan
from trainlib.tune._population import require_mutations
from trainlib.tune._portable import packed, unpacked
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._trainable import Trainable, merged
from trainlib.tune.schedulers._pbt import PopulationBasedTraining

__all__ = ["Tuner"]


class Tuner:
    """Runs trials of a trainer with different settings, each an ordinary training with a run of its own.

    Example:
        >>> from trainlib import ScalingConfig, session, tune
        >>> from trainlib.torch import TorchTrainer
        >>> def train_func(config):
        ...     session.report({"output": config["input"]})
        >>> trainer = TorchTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
        >>> tuner = tune.Tuner(
        ...     trainer,
        ...     param_space={"train_loop_config": {"input": tune.grid_search([1, 2, 3])}},
        ...     tune_config=tune.TuneConfig(num_samples=5, metric="output", mode="max"),
        ... )
        >>> len(tuner.fit())  # doctest: +SKIP
        15
    """

    def __init__(
        self,
        trainable: DataParallelTrainer | Callable[..., Any] | Any,
        *,
        param_space: dict[str, Any] | None = None,
        tune_config: TuneConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
    ) -> None:
        """A sweep.

        Args:
            trainable: a trainer; a function, which gets the config and reports, or returns, metrics; or
                ``tune.choice([...])`` or ``tune.grid_search([...])`` over trainers.
            param_space: settings of the trainer (``train_loop_config``, ``scaling_config``, ``run_config``, ``datasets``,
                ``params``, ...) with spaces in the place of values, at any depth; for a function, its config.
            tune_config: what is optimised, how many trials there are, who chooses them.
            run_config: how the sweep is kept; what it does not say, the trainer's own says.
        """
        self._given = trainable
        self._trainable = Trainable(trainable)
        if param_space is not None and not isinstance(param_space, dict):
            raise TypeError(f"param_space is a {type(param_space).__name__}: pass a dict")
        self._param_space = dict(param_space or {})
        self.tune_config = _as(TuneConfig, tune_config, "tune_config")
        self._run_fields = _set_fields(run_config)
        self.run_config: RunConfig = merged(self._trainable.run_config, self._run_fields)
        self._results: ResultGrid | None = None
        self._restored_run: str | None = None
        self._resume_errored = False

    def fit(self) -> ResultGrid:
        """Run all trials, and wait for them. Runs as the Prefect flow ``tune``.

        Raises:
            ValueError: the sweep makes no sense, e.g. has no metric to compare by; nothing has been started then.
            MetricNotReportedError: trials report, but not the metric that is to be optimised.
            SweepFailedError: a trial failed, and ``FailureConfig.fail_fast`` is set.
        """
        from trainlib.flows.fit import tune  # as Trainer.fit() does: a flow runs the sweep

        self._results = tune(self)
        return self._results

    def get_results(self) -> ResultGrid:
        """What :meth:`fit` gave; of a restored sweep, what the registry has of it.

        Raises:
            RuntimeError: there is nothing yet.
        """
        if self._results is None:
            if self._restored_run is None:
                raise RuntimeError("there are no results yet: call fit() first, or Tuner.restore(name)")
            from trainlib.tune._recall import results_of

            self._results = results_of(self.plan, self._restored_run)
        return self._results

    @classmethod
    def restore(
        cls, path: str | ResultGrid, trainable: Any = None, *, resume_errored: bool = False, **changes: Any
    ) -> Tuner:
        """The tuner of an earlier sweep, to be continued: ``fit()`` runs what is left of it.

        Args:
            path: the sweep's name, its MLflow run id, or its ResultGrid.
            trainable: the trainer or function, where it has changed.
            resume_errored: whether trials that failed are tried again, from their newest checkpoints.
            changes: what else is given anew: ``param_space=``, ``tune_config=`` or ``run_config=``.

        Example::

            results = Tuner.restore("digits-sweep").fit()
        """
        import cloudpickle

        from trainlib._registry.finding import load_trainer

        name = path.run_id if isinstance(path, ResultGrid) else path
        if not name:
            raise RunNotFoundError("that ResultGrid has no run_id: it did not come from fit()")
        run_id, data = load_trainer(name)
        kept = cloudpickle.loads(data)
        if "trainable" not in kept:
            raise TypeError(
                f"{name!r} is a training, not a sweep: restore it with its trainer, e.g. TorchTrainer.restore"
            )
        if unknown := changes.keys() - {"param_space", "tune_config", "run_config"}:
            raise TypeError(f"Tuner.restore() got unknown argument(s): {', '.join(sorted(unknown))}")
        if trainable is not None:
            changes["trainable"] = trainable
        tuner = cls(**unpacked(kept, changes))
        tuner._restored_run = run_id
        tuner._resume_errored = resume_errored
        return tuner

    @cached_property
    def plan(self) -> SweepPlan:
        """What the sweep is to do.

        Raises:
            ValueError: it makes no sense.
        """
        scheduler = self.tune_config.make_scheduler()
        space = self._trainable.space(self._param_space)
        for trainer in self._trainable.with_each_dataset(space):
            trainer.look_at_data()  # what cannot be read is told before anything starts
        if isinstance(scheduler, PopulationBasedTraining):
            require_mutations(scheduler, self._param_space)
        if scheduler.needs_checkpoints and self.run_config.checkpoint_config.num_to_keep == 0:
            raise ValueError(
                f"{type(scheduler).__name__} has trials go on from checkpoints, but CheckpointConfig(num_to_keep=0) keeps "
                "none: raise it, or leave it out"
            )
        return SweepPlan(
            trainable=self._trainable,
            space=space,
            config=self.tune_config,
            run_config=self.run_config,
            run_fields=self._run_fields,
            settings=self._dumps(),
            restored_run=self._restored_run,
            resume_errored=self._resume_errored,
        )

    @property
    def name(self) -> str:
        """What is tuned, for people."""
        return self._trainable.name

    @property
    def param_space(self) -> dict[str, Any]:
        """What was handed in."""
        return dict(self._param_space)

    @property
    def trainer(self) -> DataParallelTrainer:
        """The trainer, or the first of them, whose workers can be made ready."""
        return self._trainable.trainers[0]

    def _dumps(self) -> bytes:
        """What :meth:`restore` needs in another process. Callbacks belong to this one and are left out."""
        import cloudpickle

        settings = {
            **packed(self._given, self._param_space),
            "tune_config": self.tune_config,
            "run_config": {**self._run_fields, "callbacks": None},
        }
        try:
            return cloudpickle.dumps(settings)  # type: ignore[no-any-return]
        except Exception as error:  # pickling runs the code of whatever is pickled
            raise ValueError(f"the sweep's settings cannot be kept for another process: {error}") from error


def _as(model: Any, value: Any, name: str) -> Any:
    if value is None:
        return model()
    if isinstance(value, dict):
        return model(**value)
    if not isinstance(value, model):
        raise TypeError(f"{name} is a {type(value).__name__}: pass a {model.__name__}")
    return value


def _set_fields(config: RunConfig | dict[str, Any] | None) -> dict[str, Any]:
    if config is None or isinstance(config, dict):
        return dict(config or {})
    if not isinstance(config, RunConfig):
        raise TypeError(f"run_config is a {type(config).__name__}: pass a RunConfig")
    return {name: getattr(config, name) for name in config.model_fields_set}
