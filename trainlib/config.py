"""Settings: how many workers, where results are kept, which checkpoints are kept, what is retried.

They are pydantic models with a description on each field, because a Prefect deployment shows them as a form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, field_validator, model_validator

from trainlib._bounds import LARGEST_COUNT, LONGEST_S, MOST_WORKERS
from trainlib._positional import PositionalSettings
from trainlib._ray_objects import is_of_ray, settings_from_ray
from trainlib._runtime_env import RuntimeEnv
from trainlib._secrets import require_no_password

__all__ = ["CheckpointConfig", "DivergenceConfig", "FailureConfig", "RunConfig", "RuntimeEnv", "ScalingConfig"]


class _Config(PositionalSettings):
    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    def __init__(self, *args: Any, **values: Any) -> None:
        """Check the values and keep them. Any value may be a search space, for use in Tuner's ``param_space`` only."""
        values = self._by_name(args, values)
        if not _has_space(values):
            super().__init__(**values)
            return
        if unknown := values.keys() - type(self).model_fields.keys():
            raise ValueError(
                f"{type(self).__name__} has no setting named {', '.join(sorted(unknown))}. It has "
                f"{', '.join(type(self).model_fields)}."
            )
        template = type(self).model_construct(**values)
        for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
            object.__setattr__(self, name, getattr(template, name))


def require_values(config: BaseModel, name: str) -> None:
    """Check that a config holds values only, since a trainer cannot train with a search space.

    Raises:
        ValueError: a value is a search space.
    """
    if _has_space({field: getattr(config, field) for field in config.model_fields_set}):
        raise ValueError(f"{name} has a search space in it: put that into Tuner's param_space")


def _has_space(value: Any) -> bool:
    """Whether a search space, trainlib's or Ray's, is anywhere in a value.

    Types are compared by module name, so that neither library has to be imported.
    """
    if isinstance(value, dict):
        return value.keys() == {"grid_search"} or any(_has_space(item) for item in value.values())
    if isinstance(value, _Config):
        return any(_has_space(getattr(value, field)) for field in value.model_fields_set)
    return type(value).__module__ in ("trainlib.tune._domains", "ray.tune.search.sample")


class ScalingConfig(_Config):
    """How many workers train together, and what each of them gets.

    Example:
        >>> ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}).total_resources
        {'CPU': 2.0}
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # which may be a secret of runtime_env

    positions: ClassVar[tuple[str, ...]] = (
        "trainer_resources",
        "num_workers",
        "use_gpu",
        "resources_per_worker",
        "placement_strategy",
    )
    elsewhere: ClassVar[dict[str, str]] = {
        "_max_cpu_fraction_per_node": "datasets are read with the CPUs that the workers do not reserve. Leave some of each node's free by "
        "fewer workers, or smaller resources_per_worker={'CPU': ...}",
    }

    num_workers: int = Field(
        default=1,
        ge=1,
        le=MOST_WORKERS,
        strict=True,
        description="Workers that train together, each in its own process.",
    )
    use_gpu: bool = Field(default=False, strict=True, description="Give each worker a GPU.")
    resources_per_worker: dict[str, float] | None = Field(
        default=None,
        description="What each worker reserves, e.g. {'CPU': 2, 'GPU': 1}. Default: one CPU, and one GPU with use_gpu.",
    )
    trainer_resources: dict[str, float] | None = Field(
        default=None, description="What the coordinating process itself reserves. Default: nothing."
    )
    placement_strategy: Literal["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"] = Field(
        default="PACK", description="How the workers are laid out over the cluster's nodes."
    )
    placement_timeout_s: float = Field(
        default=60.0,
        gt=0,
        le=LONGEST_S,
        description="Seconds to wait for the cluster to have room for all workers before giving up.",
    )
    runtime_env: RuntimeEnv | None = Field(
        default=None,
        description="Packages, environment variables and code for the workers. What is set here wins over RunConfig's.",
    )

    @field_validator("trainer_resources", mode="before")
    @classmethod
    def _is_not_the_number_of_workers(cls, value: Any) -> Any:
        if isinstance(value, int):
            raise ValueError(
                f"got {value!r}. The first place is that of trainer_resources: write num_workers={value!r}"
            )
        return value

    @field_validator("resources_per_worker", "trainer_resources")
    @classmethod
    def _no_negative_amounts(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        for name, amount in (value or {}).items():
            if amount < 0:
                raise ValueError(f"{name} is {amount}: an amount of a resource cannot be negative")
        return value

    @model_validator(mode="after")
    def _gpu_settings_agree(self) -> ScalingConfig:
        gpus = (self.resources_per_worker or {}).get("GPU")
        if self.use_gpu and gpus == 0:
            raise ValueError("use_gpu is set, but resources_per_worker gives each worker 0 GPU: drop one of them")
        if not self.use_gpu and gpus:
            raise ValueError(f"resources_per_worker asks for {gpus:g} GPU a worker: set use_gpu=True as well")
        if gpus is not None and gpus > 1 and gpus % 1:
            raise ValueError(
                f"resources_per_worker asks for {gpus:g} GPU a worker: above 1 it has to be a whole number"
            )
        return self

    @model_validator(mode="after")
    def _workers_reserve_something(self) -> ScalingConfig:
        if not self.worker_resources:
            raise ValueError(
                f"resources_per_worker reserves nothing for a worker: {self.resources_per_worker}. Ray places a worker "
                "where it has reserved something. Give an amount above 0, e.g. {'CPU': 0.5}, or leave it out for one CPU."
            )
        return self

    @property
    def worker_resources(self) -> dict[str, float]:
        """What one worker reserves, with defaults filled in and without zeros."""
        defaults = {"CPU": 1.0, **({"GPU": 1.0} if self.use_gpu else {})}
        return _above_zero({**defaults, **(self.resources_per_worker or {})})

    @property
    def bundles(self) -> list[dict[str, float]]:
        """What Ray is asked to reserve: one bundle for each worker, then one for the trainer if it needs anything.

        Zeros are left out, and a bundle of nothing but zeros too: Ray refuses an empty bundle.
        """
        trainer = _above_zero(self.trainer_resources or {})
        return [dict(self.worker_resources) for _ in range(self.num_workers)] + ([trainer] if trainer else [])

    @property
    def total_resources(self) -> dict[str, float]:
        """The sum over all bundles."""
        total: dict[str, float] = {}
        for bundle in self.bundles:
            for name, amount in bundle.items():
                total[name] = total.get(name, 0.0) + amount
        return total


def _above_zero(resources: dict[str, float]) -> dict[str, float]:
    return {name: float(amount) for name, amount in resources.items() if amount}


class CheckpointConfig(_Config):
    """Which checkpoints are kept: the N best by score, or the N newest without one, and besides them the newest.

    The newest one is what a retry resumes from, and what ``result.checkpoint`` is; ``result.best_checkpoints`` has the N. With
    ``num_to_keep=0`` it is the only one, and in memory.

    Example:
        >>> CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="loss", checkpoint_score_order="min").num_to_keep
        2
    """

    positions: ClassVar[tuple[str, ...]] = (
        "num_to_keep",
        "checkpoint_score_attribute",
        "checkpoint_score_order",
        "checkpoint_frequency",
        "checkpoint_at_end",
    )
    num_to_keep: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_COUNT,
        strict=True,
        description="How many checkpoints to keep: the best by score, or the newest if there is no score. Empty keeps all. From 1 on, "
        "the newest one is kept besides these, because a retry resumes from it. With 0, none is written: the newest one alone is "
        "kept, in Ray's memory, as long as the training's process lives.",
    )
    checkpoint_score_attribute: str | None = Field(
        default=None,
        min_length=1,
        description="The score that ranks checkpoints: a key of the checkpoint's dict, or a reported metric.",
    )
    checkpoint_score_order: Literal["max", "min"] = Field(
        default="max", description="Whether a high or a low score is better."
    )
    checkpoint_frequency: int = Field(
        default=0,
        ge=0,
        strict=True,
        description="A checkpoint after every so many iterations. 0: none before the end. For trainers without a training function, "
        "such as XGBoostTrainer: a function says itself when to save.",
    )
    checkpoint_at_end: bool | None = Field(
        default=None,
        strict=True,
        description="Whether there is a checkpoint of the last iteration. Default: yes. For trainers without a training function.",
    )
    max_staged: int = Field(
        default=16,
        ge=1,
        le=LARGEST_COUNT,
        strict=True,
        description="How many checkpoints may wait on a worker's disk until the store has them. With more, report() waits.",
    )
    max_staged_gib: float = Field(
        default=32.0,
        gt=0,
        le=LONGEST_S,
        description="How many GiB such checkpoints may take together. With more, report() waits. One may always wait.",
    )

    def is_due(self, iteration: int, *, is_last: bool) -> bool:
        """Whether a trainer without a training function saves a checkpoint after an iteration, counted from 1.

        Example:
            >>> [CheckpointConfig(checkpoint_frequency=2).is_due(i, is_last=i == 5) for i in (1, 2, 3, 4, 5)]
            [False, True, False, True, True]
        """
        if is_last and self.checkpoint_at_end is not False:
            return True
        return self.checkpoint_frequency > 0 and iteration % self.checkpoint_frequency == 0


class FailureConfig(_Config):
    """How often a failed attempt is retried.

    Example:
        >>> FailureConfig(max_failures=3).max_preemptions
        -1
    """

    positions: ClassVar[tuple[str, ...]] = ("max_failures", "fail_fast")

    max_failures: int = Field(
        default=0,
        ge=-1,
        le=LARGEST_COUNT,
        strict=True,
        description="Retries after a lost worker, an exception of the training function, a checkpoint that could not be saved, "
        "or a server that was away for too long. -1 retries for ever.",
    )
    max_preemptions: int = Field(
        default=-1,
        ge=-1,
        le=LARGEST_COUNT,
        strict=True,
        description="Retries after a node was drained or lost, counted apart. -1 retries for ever.",
    )
    retry_user_errors: Literal["unless_repeated", "always", "never"] = Field(
        default="unless_repeated",
        description="Whether an exception of the training function is retried, within max_failures. unless_repeated: not if the "
        "same exception comes from the same line a second time, and no checkpoint was saved in between.",
    )
    fail_fast: bool = Field(default=False, strict=True, description="In a sweep: the first failed trial ends it.")
    mlflow_timeout_min: float = Field(
        default=10.0,
        ge=0,
        le=LONGEST_S,
        description="Minutes to wait for MLflow when it is away or hangs. The training goes on meanwhile. If a checkpoint "
        "cannot be recorded by then, the attempt has failed.",
    )

    @field_validator("retry_user_errors", mode="before")
    @classmethod
    def _yes_and_no_are_words(cls, value: Any) -> Any:
        return {True: "always", False: "never"}[value] if isinstance(value, bool) else value


class DivergenceConfig(_Config):
    """When a training counts as diverged, and ends.

    A checkpoint that is reported with a value beyond the limit is not saved, so that it takes no better one's place.

    Example:
        >>> DivergenceConfig(metric="loss", factor=5).patience
        3
    """

    metric: str = Field(
        default="loss", min_length=1, description="A reported metric of which a low value is better, such as the loss."
    )
    factor: float | None = Field(
        default=10.0,
        gt=1,
        allow_inf_nan=False,
        description="A value is beyond the limit when it is more than this many times the best one of its attempt. Leave it "
        "empty for a metric that comes close to 0, and set bound instead.",
    )
    bound: float | None = Field(
        default=None, allow_inf_nan=False, description="A value is also beyond the limit when it is higher than this."
    )
    patience: int = Field(
        default=3,
        ge=1,
        le=LARGEST_COUNT,
        strict=True,
        description="How many reports in a row have to be beyond the limit. NaN and infinity are beyond any limit.",
    )

    @model_validator(mode="after")
    def _has_a_limit(self) -> DivergenceConfig:
        if self.factor is None and self.bound is None:
            raise ValueError("neither factor nor bound is set: set one of them, or leave out RunConfig.divergence")
        return self


Stop = dict[str, float] | Callable[[str, dict[str, Any]], bool] | None


# Experiments have a folder of their name.
_LONGEST_NAMES = {"name": 250, "experiment_name": 200}


class RunConfig(_Config):
    """A training's name, where it is kept, when it ends, and what is retried.

    Example:
        >>> RunConfig(name="digits", stop={"training_iteration": 5}).name
        'digits'
    """

    model_config = ConfigDict(hide_input_in_errors=True)  # which may be a password

    positions: ClassVar[tuple[str, ...]] = (
        "name",
        "storage_path",
        "callbacks",
        "stop",
        "failure_config",
        "sync_config",
        "checkpoint_config",
        "progress_reporter",
        "verbose",
        "log_to_file",
    )
    renamed: ClassVar[dict[str, str]] = {"local_dir": "storage_path"}
    elsewhere: ClassVar[dict[str, str]] = {
        "sync_config": "checkpoints go to storage_path by themselves, also when it is a URI",
        "progress_reporter": "set verbose, from 0 to 3",
        "log_to_file": "what workers print is shown, and kept, by itself",
    }

    name: str | None = Field(
        default=None,
        min_length=1,
        description="The training's name. If the last training with this name was interrupted, and its function, config and "
        "data are unchanged, that training is continued.",
    )
    experiment_name: str | None = Field(
        default=None, min_length=1, description="The MLflow experiment. Default: trainlib."
    )
    storage_path: str | None = Field(
        default=None,
        description="Folder or URI (s3://..., gs://...) for checkpoints. In a folder there are also the logs, which otherwise are "
        "in trainlib's home folder. Default: all in the home folder.",
    )
    callbacks: Annotated[Sequence[Any] | None, SkipValidation] = Field(
        default=None, exclude=True, description="Callbacks, called with each result."
    )
    stop: Annotated[Stop, SkipValidation] = Field(
        default=None,
        description="When to end the training: {'metric': bound}, or a function of (trial_id, result).",
    )
    max_time_s: float | None = Field(
        default=None,
        gt=0,
        le=LONGEST_S,
        allow_inf_nan=False,
        description="Seconds that the training may take, in all its attempts together, also after a restart. They count while "
        "its workers run, but not while it waits for room or for a retry. Then it ends at its next report, or, if none comes "
        "within a few seconds, without it. In a sweep, each trial has this time.",
    )
    stop_on_nan: bool = Field(
        default=False,
        strict=True,
        description="End the training when a reported metric is NaN. A checkpoint that is reported with it is not saved.",
    )
    divergence: DivergenceConfig | None = Field(
        default=None, description="End the training when a metric grows far beyond its best value."
    )
    checkpoint_config: CheckpointConfig = Field(
        default_factory=CheckpointConfig, description="Which checkpoints are kept."
    )
    failure_config: FailureConfig = Field(default_factory=FailureConfig, description="What is retried.")
    verbose: Literal[0, 1, 2, 3] = Field(
        default=1,
        description="What the terminal shows besides the workers' own prints: 0 nothing, 1 progress, 2 also a line for each "
        "result, 3 each result in full.",
    )
    runtime_env: RuntimeEnv | None = Field(
        default=None,
        description="Packages, environment variables and code for the workers, e.g. {'pip': ['einops']}. What ScalingConfig's "
        "sets wins.",
    )
    working_dir_per_rank: bool = Field(
        default=True,
        strict=True,
        description="Run the training function of each rank in a folder of its own, rank_0 and so on in the training's log "
        "directory, so that ranks that write the same file do not race. TRAINLIB_ORIG_WORKING_DIR then names the folder that the "
        "script runs in. Without it, all ranks run there.",
    )

    @field_validator("checkpoint_config", "failure_config", mode="before")
    @classmethod
    def _takes_none_and_rays_own(cls, value: Any, info: Any) -> Any:
        kind = CheckpointConfig if info.field_name == "checkpoint_config" else FailureConfig
        if value is None:
            return kind()
        settings = settings_from_ray(value, kind.__name__)
        return value if settings is None else kind(**settings)

    @field_validator("name", "experiment_name")
    @classmethod
    def _mlflow_accepts_names(cls, value: str | None, info: Any) -> str | None:
        if value is None:
            return value
        longest = _LONGEST_NAMES[info.field_name]
        if len(value) > longest:
            raise ValueError(f"{value[:30]!r}... has {len(value)} characters: shorten it to {longest}")
        if "'" in value:
            raise ValueError(f"{value!r} has a quote in it, which MLflow cannot search for: leave it out")
        if not value.isprintable():
            raise ValueError(f"{value!r} has characters that cannot be printed: leave them out")
        if value.strip(" .") == "":
            raise ValueError(f"{value!r} is not a name: use letters or digits")
        return value

    @field_validator("storage_path", mode="before")
    @classmethod
    def _path_objects_are_paths(cls, value: Any) -> Any:
        import os

        path = os.fspath(value) if isinstance(value, os.PathLike) else value
        return require_no_password(path) if isinstance(path, str) else path

    @field_validator("callbacks")
    @classmethod
    def _callbacks_are_callbacks(cls, value: Any) -> Any:
        from trainlib.callbacks import Callback

        if value is not None and not isinstance(value, (list, tuple)):
            raise ValueError(f"callbacks is a {type(value).__name__}: pass a list of callbacks")
        for callback in value or ():
            if isinstance(callback, Callback):
                continue
            if is_of_ray(callback, "Callback"):
                raise ValueError(
                    f"{type(callback).__name__} is a callback of ray.tune, which knows only Ray's trials: let it extend "
                    "trainlib.callbacks.Callback, which has the same methods, or take the callback of that name from there"
                )
            raise ValueError(
                f"{callback!r} is not a callback: pass objects of a class that extends trainlib.callbacks.Callback"
            )
        return value

    @field_validator("stop")
    @classmethod
    def _stop_can_be_judged(cls, value: Any) -> Any:
        if value is None or callable(value):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"stop is a {type(value).__name__}: pass a dict of metric and bound, or a function")
        for metric, bound in value.items():
            if isinstance(bound, bool) or not isinstance(bound, (int, float)):
                raise ValueError(f"the bound of {metric!r} is {bound!r}: pass a number")
        return value
