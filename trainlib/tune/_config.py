"""The settings of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import ConfigDict, Field, SkipValidation, WithJsonSchema, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from trainlib._bounds import LARGEST_COUNT, LARGEST_SEED
from trainlib._positional import PositionalSettings
from trainlib._ray_objects import described
from trainlib.tune._search import SearchName
from trainlib.tune.schedulers import (
    ASHAScheduler,
    FIFOScheduler,
    HyperBandScheduler,
    MedianStoppingRule,
    TrialScheduler,
)

__all__ = ["SCHEDULERS", "SchedulerName", "TuneConfig"]

SchedulerName = Literal["fifo", "asha", "hyperband", "median"]

SCHEDULERS: dict[str, Callable[[], TrialScheduler]] = {
    "fifo": FIFOScheduler,
    "asha": ASHAScheduler,
    "hyperband": HyperBandScheduler,
    # By iteration: the rule's own default is in seconds, which a form does not show.
    "median": lambda: MedianStoppingRule("training_iteration", grace_period=1),
}


def _dropdown(names: Any) -> WithJsonSchema:
    """A form offers the names in a dropdown. Objects can only be passed in Python."""
    return WithJsonSchema({"type": "string", "enum": list(get_args(names))})


class TuneConfig(PositionalSettings):
    """What a sweep optimises, how many trials it runs, how it samples them, and which it stops early.

    Example:
        >>> from trainlib.tune import TuneConfig
        >>> TuneConfig(metric="accuracy", mode="max", num_samples=20, search_alg="tpe").num_samples
        20
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    positions: ClassVar[tuple[str, ...]] = (
        "mode",
        "metric",
        "search_alg",
        "scheduler",
        "num_samples",
        "max_concurrent_trials",
        "time_budget_s",
        "reuse_actors",
        "trial_name_creator",
    )
    elsewhere: ClassVar[dict[str, str]] = {"reuse_actors": "workers stay warm from trial to trial by themselves"}

    metric: str | None = Field(
        default=None, min_length=1, description="The reported metric that trials are compared by."
    )
    mode: Literal["max", "min"] | None = Field(default=None, description="Whether a high or a low value is better.")
    num_samples: int = Field(
        default=1,
        le=LARGEST_COUNT,
        strict=True,
        description="How many trials to run. With a grid, how often to run each of its points. -1: until time_budget_s is over.",
    )
    max_concurrent_trials: int | None = Field(
        default=None,
        le=LARGEST_COUNT,
        description="How many trials may run at once. Default: as many as fit on the cluster.",
    )
    search_alg: Annotated[Any, SkipValidation, _dropdown(SearchName)] = Field(
        default="random", description="How values are chosen: random, tpe, cmaes, gp, or in Python any Optuna sampler."
    )
    scheduler: Annotated[Any, SkipValidation, _dropdown(SchedulerName)] = Field(
        default="fifo",
        description="Which trials are stopped early. fifo: none. In Python, also any scheduler of trainlib.tune.",
    )
    time_budget_s: float | None = Field(default=None, description="The sweep ends after this many seconds.")
    seed: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_SEED,
        description="With the same seed, a sweep chooses the same values again. Default: random.",
    )
    trial_name_creator: Annotated[Any, SkipValidation, SkipJsonSchema()] = Field(
        default=None, exclude=True, description="A function that takes a trial and returns its name."
    )

    @field_validator("mode", mode="before")
    @classmethod
    def _check_mode(cls, value: Any) -> Any:
        if value not in (None, "max", "min"):
            raise ValueError(f"mode is {value!r}: use 'max' if a high value is better, 'min' if a low one is")
        return value

    @field_validator("num_samples")
    @classmethod
    def _check_num_samples(cls, value: int) -> int:
        if value == 0 or value < -1:
            raise ValueError(f"num_samples is {value}: set it to 1 or more, or to -1 with a time_budget_s")
        return value

    @field_validator("max_concurrent_trials")
    @classmethod
    def _check_concurrency(cls, value: int | None) -> int | None:
        if value is not None and value < 1:
            raise ValueError(f"max_concurrent_trials is {value}: set it to 1 or more, or leave it out")
        return value

    @field_validator("time_budget_s", mode="before")
    @classmethod
    def _check_time_budget(cls, value: Any) -> Any:
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float))):
            raise ValueError(f"time_budget_s is {seconds!r}: pass seconds or a timedelta")
        if seconds is not None and not seconds > 0:
            raise ValueError(
                f"time_budget_s is {seconds:g}, so no trial could run: set it to more than 0, or leave it out"
            )
        return seconds

    @field_validator("trial_name_creator")
    @classmethod
    def _check_trial_name_creator(cls, value: Any) -> Any:
        if value is not None and not callable(value):
            raise ValueError(f"trial_name_creator is a {type(value).__name__}: pass a function that takes a trial")
        return value

    @field_validator("search_alg")
    @classmethod
    def _check_search_alg(cls, value: Any) -> Any:
        if value is None:
            return "random"
        if isinstance(value, str) and value not in get_args(SearchName):
            raise ValueError(f"search_alg is {value!r}: use {', '.join(get_args(SearchName))}, or an Optuna sampler")
        if not isinstance(value, str) and not hasattr(value, "sample_relative"):
            raise ValueError(f"search_alg is {described(value)}: pass a name, or a sampler from optuna.samplers")
        return value

    @field_validator("scheduler")
    @classmethod
    def _check_scheduler(cls, value: Any) -> Any:
        if value is None:
            return "fifo"
        if isinstance(value, str) and value not in SCHEDULERS:
            raise ValueError(f"scheduler is {value!r}: use {', '.join(SCHEDULERS)}, or a scheduler of trainlib.tune")
        if not isinstance(value, (str, TrialScheduler)):
            raise ValueError(f"scheduler is {described(value)}: pass a name, or a scheduler of trainlib.tune")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> TuneConfig:
        if self.num_samples == -1 and self.time_budget_s is None:
            raise ValueError(
                "num_samples is -1 without a time_budget_s, so the sweep would never end: set time_budget_s"
            )
        if self.metric is not None and self.mode is None:
            raise ValueError(f"metric is {self.metric!r}, but mode is missing: set mode='max' or mode='min'")
        if self.mode is not None and self.metric is None:
            raise ValueError(f"mode is {self.mode!r}, but metric is missing: set the metric to optimise")
        if self.metric is None and self.search_alg != "random" and type(self.search_alg).__name__ != "RandomSampler":
            name = self.search_alg if isinstance(self.search_alg, str) else type(self.search_alg).__name__
            raise ValueError(f"search_alg={name!r} learns from a metric, but none is set: set metric and mode")
        return self

    def make_scheduler(self) -> TrialScheduler:
        """A scheduler with the sweep's metric and mode. It keeps state, so each sweep gets its own copy.

        Raises:
            ValueError: metric or mode is missing.
        """
        import copy

        chosen = self.scheduler
        scheduler = SCHEDULERS[chosen]() if isinstance(chosen, str) else copy.deepcopy(chosen)
        scheduler.use(self.metric, self.mode)
        return scheduler
