"""The older way to start a sweep: ``tune.run(trainable, config=...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from trainlib.config import CheckpointConfig, FailureConfig, RunConfig
from trainlib.result import Result
from trainlib.trainer import BaseTrainer
from trainlib.tune._config import TuneConfig
from trainlib.tune._result_grid import ResultGrid
from trainlib.tune._sample import as_domain
from trainlib.tune._tuner import Tuner

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ExperimentAnalysis", "run"]

Mode = Literal["max", "min"]


class ExperimentAnalysis:
    """What :func:`run` returns.

    Example:
        >>> from trainlib import Result
        >>> from trainlib.tune import ResultGrid
        >>> grid = ResultGrid([Result(metrics={"output": x, "config": {"input": x}}) for x in (1, 2, 3)])
        >>> ExperimentAnalysis(grid).get_best_config(metric="output", mode="max")
        {'input': 3}
    """

    def __init__(self, results: ResultGrid) -> None:
        self.results = results

    def get_best_trial(self, metric: str | None = None, mode: Mode | None = None, scope: str = "last") -> Result:
        """The best trial's result."""
        return self.results.get_best_result(metric, mode, scope)

    def get_best_config(
        self, metric: str | None = None, mode: Mode | None = None, scope: str = "last"
    ) -> dict[str, Any]:
        """The config of the best trial, as the training function got it."""
        config = self.get_best_trial(metric, mode, scope).config
        return dict(config.get("train_loop_config", config))

    @property
    def best_config(self) -> dict[str, Any]:
        """The config of the best trial, by the metric and mode of ``run``."""
        return self.get_best_config()

    @property
    def best_result(self) -> dict[str, Any]:
        """The last metrics of the best trial, by the metric and mode of ``run``."""
        return dict(self.get_best_trial().metrics or {})

    @property
    def trials(self) -> list[Result]:
        """All results."""
        return list(self.results)

    def dataframe(self, metric: str | None = None, mode: Mode | None = None) -> pd.DataFrame:
        """One row per trial. With a metric and mode, the row of its best iteration."""
        return self.results.get_dataframe(metric, mode)


def run(
    trainable: Any,
    *,
    config: dict[str, Any] | None = None,
    name: str | None = None,
    metric: str | None = None,
    mode: Mode | None = None,
    stop: Any = None,
    num_samples: int = 1,
    search_alg: Any = "random",
    scheduler: Any = "fifo",
    time_budget_s: float | None = None,
    max_concurrent_trials: int | None = None,
    max_failures: int = 0,
    fail_fast: bool = False,
    keep_checkpoints_num: int | None = None,
    storage_path: str | None = None,
    callbacks: list[Any] | None = None,
    verbose: Literal[0, 1, 2, 3] = 1,
    seed: int | None = None,
) -> ExperimentAnalysis:
    """Tune a function or a trainer. ``config`` is the config of the training function, with search spaces in it.

    Example::

        analysis = tune.run(train_func, config={"num_epochs": 2, "input": tune.grid_search([1, 2, 3])})
        print(analysis.get_best_config(metric="output", mode="max"))
    """
    settings: dict[str, Any] = {"name": name, "stop": stop, "storage_path": storage_path, "callbacks": callbacks}
    run_config: dict[str, Any] = {key: value for key, value in settings.items() if value is not None}
    run_config["verbose"] = verbose
    if max_failures or fail_fast:
        run_config["failure_config"] = FailureConfig(max_failures=max_failures, fail_fast=fail_fast)
    if keep_checkpoints_num is not None:
        run_config["checkpoint_config"] = CheckpointConfig(num_to_keep=keep_checkpoints_num)
    is_function = not isinstance(trainable, BaseTrainer) and as_domain(trainable) is None
    tuner = Tuner(
        trainable,
        param_space=config if is_function else {"train_loop_config": config or {}},
        tune_config=TuneConfig(
            metric=metric,
            mode=mode,
            num_samples=num_samples,
            search_alg=search_alg,
            scheduler=scheduler,
            time_budget_s=time_budget_s,
            max_concurrent_trials=max_concurrent_trials,
            seed=seed,
        ),
        run_config=RunConfig(**run_config),
    )
    return ExperimentAnalysis(tuner.fit())
