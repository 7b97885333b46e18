"""Settings: how many workers, where results are kept, which checkpoints are kept, what is retried.

They are pydantic models with a description on each field, because a Prefect deployment shows them as a form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, field_validator, model_validator

__all__ = ["CheckpointConfig", "FailureConfig", "RunConfig", "ScalingConfig"]


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_assignment=True, arbitrary_types_allowed=True)

    def __init__(self, **values: Any) -> None:
        """Check the values and keep them. Any value may be a search space, for use in Tuner's ``param_space`` only."""
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

    num_workers: int = Field(
        default=1, ge=1, strict=True, description="Workers that train together, each in its own process."
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
        description="Seconds to wait for the cluster to have room for all workers before giving up.",
    )

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
    """Which checkpoints are kept.

    Example:
        >>> CheckpointConfig(num_to_keep=2, checkpoint_score_attribute="loss", checkpoint_score_order="min").num_to_keep
        2
    """

    num_to_keep: int | None = Field(
        default=None,
        ge=0,
        strict=True,
        description="How many checkpoints to keep: the best by score, or the newest if there is no score. 0 writes none, "
        "empty keeps all. The newest one is always kept, because a retry resumes from it.",
    )
    checkpoint_score_attribute: str | None = Field(
        default=None,
        min_length=1,
        description="The score that ranks checkpoints: a key of the checkpoint's dict, or a reported metric.",
    )
    checkpoint_score_order: Literal["max", "min"] = Field(
        default="max", description="Whether a high or a low score is better."
    )
    max_staged: int = Field(
        default=16,
        ge=1,
        strict=True,
        description="How many checkpoints may wait on a worker's disk until the store has them. With more, report() waits.",
    )
    max_staged_gib: float = Field(
        default=32.0,
        gt=0,
        description="How many GiB such checkpoints may take together. With more, report() waits. One may always wait.",
    )


class FailureConfig(_Config):
    """How often a failed attempt is retried.

    Example:
        >>> FailureConfig(max_failures=3).max_preemptions
        -1
    """

    max_failures: int = Field(
        default=0,
        ge=-1,
        strict=True,
        description="Retries after a lost worker, a checkpoint that could not be saved, or a server that was away for too "
        "long. -1 retries for ever.",
    )
    max_preemptions: int = Field(
        default=-1,
        ge=-1,
        strict=True,
        description="Retries after a node was drained or lost, counted apart. -1 retries for ever.",
    )
    retry_user_errors: bool = Field(
        default=False,
        strict=True,
        description="Count an exception of the training function as a failure that is retried. It rarely heals.",
    )
    fail_fast: bool = Field(default=False, strict=True, description="In a sweep: the first failed trial ends it.")
    mlflow_timeout_min: float = Field(
        default=10.0,
        ge=0,
        description="Minutes to wait for MLflow when it is away or hangs. The training goes on meanwhile. If a checkpoint "
        "cannot be recorded by then, the attempt has failed.",
    )


Stop = dict[str, float] | Callable[[str, dict[str, Any]], bool] | None


# Experiments have a folder of their name.
_LONGEST_NAMES = {"name": 250, "experiment_name": 200}


class RunConfig(_Config):
    """A training's name, where it is kept, when it ends, and what is retried.

    Example:
        >>> RunConfig(name="digits", stop={"training_iteration": 5}).name
        'digits'
    """

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
        description="Folder or URI (s3://..., gs://...) for logs and checkpoints. Default: trainlib's home folder.",
    )
    callbacks: Annotated[Sequence[Any] | None, SkipValidation] = Field(
        default=None, exclude=True, description="Callbacks, called with each result."
    )
    stop: Annotated[Stop, SkipValidation] = Field(
        default=None,
        description="When to end the training: {'metric': bound}, or a function of (trial_id, result).",
    )
    checkpoint_config: CheckpointConfig = Field(
        default_factory=CheckpointConfig, description="Which checkpoints are kept."
    )
    failure_config: FailureConfig = Field(default_factory=FailureConfig, description="What is retried.")
    verbose: Literal[0, 1, 2] = Field(
        default=1, description="0 is silent, 1 shows progress, 2 prints each result as well."
    )

    @field_validator("checkpoint_config", "failure_config", mode="before")
    @classmethod
    def _none_is_the_default(cls, value: Any, info: Any) -> Any:
        if value is None:
            return CheckpointConfig() if info.field_name == "checkpoint_config" else FailureConfig()
        return value

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

        from trainlib._secrets import masked_uri

        path = os.fspath(value) if isinstance(value, os.PathLike) else value
        if isinstance(path, str) and masked_uri(path) != path:
            raise ValueError(
                f"{masked_uri(path)} has a password in it, which MLflow would store. Give it to the store's library in the "
                "environment instead, e.g. as AWS_SECRET_ACCESS_KEY"
            )
        return path

    @field_validator("callbacks")
    @classmethod
    def _callbacks_are_callbacks(cls, value: Any) -> Any:
        from trainlib.callbacks import Callback

        for callback in value or ():
            if not isinstance(callback, Callback):
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
