"""The Tuner: a trainer, a search space, and the settings of the sweep."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trainlib._importing import without_collecting
from trainlib._ray_objects import described, settings_from_ray
from trainlib.config import RunConfig, RuntimeEnv
from trainlib.errors import InvalidArgumentError, RunNotFoundError
from trainlib.trainer import DataParallelTrainer
from trainlib.tune._config import TuneConfig
from trainlib.tune._portable import packed, unpacked
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._trainable import Trainable, merged

if TYPE_CHECKING:
    from trainlib.tune._plan import SweepPlan

__all__ = ["Tuner"]


class Tuner:
    """Runs trials of a trainer with different settings. Each trial is an ordinary training with its own MLflow run.

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
            trainable: a trainer; or a function that gets the config, and reports or returns metrics; or
                ``tune.choice([...])`` or ``tune.grid_search([...])`` over trainers.
            param_space: settings of the trainer (``train_loop_config``, ``scaling_config``, ``run_config``, ``datasets``,
                ``params``, ...) with search spaces in place of values, at any depth. For a function: its config.
            tune_config: what to optimise, how many trials to run, and how to choose them.
            run_config: the name, storage and callbacks of the sweep. What it leaves out comes from the trainer's own.
        """
        self._given = trainable
        self._trainable = Trainable(trainable)
        if param_space is not None and not isinstance(param_space, dict):
            raise InvalidArgumentError(f"param_space is a {type(param_space).__name__}: pass a dict")
        self._param_space = dict(param_space or {})
        self.tune_config = _as(TuneConfig, tune_config, "tune_config")
        self._run_fields = _set_fields(run_config)
        self.run_config: RunConfig = merged(self._trainable.run_config, self._run_fields)
        self._results: ResultGrid | None = None
        self._restored_run: str | None = None
        self._resume_errored = False

    def fit(self) -> ResultGrid:
        """Run all trials, and wait for them to end. Runs as the Prefect flow ``sweep``.

        Raises:
            ValueError: the settings do not fit together, e.g. a metric is missing. Raised before anything starts.
            MetricNotReportedError: trials do not report the metric to optimise.
            SweepFailedError: a trial failed, and ``FailureConfig.fail_fast`` is set.
        """
        with without_collecting():
            from trainlib.flows._fit import tune  # as Trainer.fit() does: a flow runs the sweep

        self._results = tune(self)
        return self._results

    def get_results(self) -> ResultGrid:
        """The results of :meth:`fit`. For a restored sweep, the results in the registry.

        Raises:
            RuntimeError: there are no results yet.
        """
        if self._results is None:
            if self._restored_run is None:
                raise RuntimeError("there are no results yet: call fit() first, or Tuner.restore(name)")
            from trainlib.tune._recall import results_of

            self._results = results_of(self.plan, self._restored_run)
        return self._results

    @classmethod
    def restore(
        cls,
        path: str | os.PathLike[str] | ResultGrid,
        trainable: Any = None,
        *,
        resume_errored: bool = False,
        **changes: Any,
    ) -> Tuner:
        """The tuner of an earlier sweep, to be continued: ``fit()`` runs what is left of it.

        Args:
            path: the sweep's name, its MLflow run id, its ResultGrid, or its folder, which has the folders of its trials.
            trainable: the trainer or function, if it has changed.
            resume_errored: whether to retry failed trials from their newest checkpoints.
            changes: other settings that have changed: ``param_space=``, ``tune_config=`` or ``run_config=``.

        Example::

            results = Tuner.restore("digits-sweep").fit()
        """
        import cloudpickle

        from trainlib._registry.finding import load_trainer

        name = path.run_id if isinstance(path, ResultGrid) else path
        if not name:
            raise RunNotFoundError(
                "this ResultGrid has no run_id, because it did not come from fit(). Pass the name or run id of the sweep"
            )
        run_id, data = load_trainer(name)
        kept = cloudpickle.loads(data)
        if not isinstance(kept, dict):
            raise InvalidArgumentError(
                f"{name!r} is a training, not a sweep. Restore it with its trainer, e.g. TorchTrainer.restore({name!r})"
            )
        if unknown := changes.keys() - {"param_space", "tune_config", "run_config"}:
            raise InvalidArgumentError(f"Tuner.restore() got unknown argument(s): {', '.join(sorted(unknown))}")
        if trainable is not None:
            changes["trainable"] = trainable
        tuner = cls(**unpacked(kept, changes))
        tuner._restored_run = run_id
        tuner._resume_errored = resume_errored
        return tuner

    @cached_property
    def plan(self) -> SweepPlan:
        """The plan of the sweep.

        Raises:
            ValueError: the settings do not fit together.
        """
        from trainlib._training.opening import fingerprint_of  # which imports Ray
        from trainlib.tune._plan import SweepPlan

        scheduler = self.tune_config.make_scheduler()
        space = self._trainable.space(self._param_space)
        # An unreadable file is an error before anything starts.
        inspected = [(trainer, trainer.inspect_data()) for trainer in self._trainable.with_each_dataset(space)]
        scheduler.require_space(self._param_space)
        for trainer in self._trainable.trainers:
            scheduler.require_checkpoints(merged(trainer.run_config, self._run_fields).checkpoint_config)
        return SweepPlan(
            trainable=self._trainable,
            space=space,
            config=self.tune_config,
            run_config=self.run_config,
            run_fields=self._run_fields,
            settings=self._dumps(),
            trained=() if self._restored_run else tuple(fingerprint_of(*each) for each in inspected),
            restored_run=self._restored_run,
            resume_errored=self._resume_errored,
        )

    @property
    def name(self) -> str:
        """The name of what is tuned, for display."""
        return self._trainable.name

    @property
    def param_space(self) -> dict[str, Any]:
        """The search space, as it was passed."""
        return dict(self._param_space)

    @property
    def trainer(self) -> DataParallelTrainer:
        """The trainer, or the first of several. Its workers can be warmed up."""
        return self._trainable.trainers[0]

    @property
    def trainers(self) -> tuple[DataParallelTrainer, ...]:
        """All trainers that it chooses from."""
        return tuple(self._trainable.trainers)

    def _dumps(self) -> bytes:
        """The settings that :meth:`restore` needs in another process. Callbacks are left out: they belong to this process."""
        import cloudpickle

        settings = {
            **packed(self._given, self._param_space),
            "tune_config": self.tune_config,
            "run_config": {**self._run_fields, "callbacks": None},
        }
        try:
            return cloudpickle.dumps(settings)  # type: ignore[no-any-return]
        except Exception as error:  # pickling runs user code
            raise ValueError(f"the sweep's settings cannot be saved for a restart: {error}") from error


def _as(model: Any, value: Any, name: str) -> Any:
    if value is None:
        return model()
    if (settings := settings_from_ray(value, model.__name__)) is not None:
        value = settings
    if isinstance(value, dict):
        return model(**value)
    if not isinstance(value, model):
        raise InvalidArgumentError(f"{name} is {described(value)}: pass a trainlib.tune.{model.__name__}")
    return value


def _set_fields(config: RunConfig | dict[str, Any] | None) -> dict[str, Any]:
    if (settings := settings_from_ray(config, "RunConfig")) is not None:
        config = RunConfig(**settings)
    if config is None or isinstance(config, dict):
        fields = dict(config or {})
        if isinstance(fields.get("runtime_env"), dict):
            fields["runtime_env"] = RuntimeEnv(**fields["runtime_env"])  # which keeps its secrets out of what is saved
        return fields
    if not isinstance(config, RunConfig):
        raise InvalidArgumentError(f"run_config is a {type(config).__name__}: pass a RunConfig")
    return {name: getattr(config, name) for name in config.model_fields_set}
