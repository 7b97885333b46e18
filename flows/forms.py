"""What the forms of several flows have in common: the sections, and the settings that are made of them.

A form asks first for the few things that people change. They are parameters of the flow. What remains of each settings class is
a section. In Python, a flow takes the settings themselves too: ``run_config=RunConfig(name="digits")``.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, model_validator

from trainlib._bounds import MOST_WORKERS
from trainlib._data.config import DataConfig
from trainlib._data.manifest import PreprocessedDataset
from trainlib._data.spec import SplitSpec, StepSpec
from trainlib._form_secrets import WithoutPlainSecrets
from trainlib._forms import Section, plain
from trainlib._runtime_env import RuntimeEnv
from trainlib._secrets import require_no_password
from trainlib._trainer_form import TrainerChoice
from trainlib.config import CheckpointConfig, DivergenceConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError
from trainlib.flows.demo_data import located

__all__ = [
    "CheckpointSection",
    "DataSection",
    "DataSource",
    "DatasetPaths",
    "DivergenceSection",
    "EnvironmentSection",
    "FailureSection",
    "MoreTrainers",
    "NumWorkers",
    "RunSection",
    "ScalingSection",
    "SearchSpace",
    "SplitSection",
    "StepSection",
    "TrainerChoice",
    "combined",
    "located_datasets",
    "run_config_of",
    "scaling_config_of",
]

C = TypeVar("C", bound=BaseModel)

NumWorkers = Annotated[int, Field(ge=1, le=MOST_WORKERS, strict=True)]
DatasetPaths = Annotated[dict[str, str | PreprocessedDataset], WithoutPlainSecrets()]
DataSource = Annotated[str, AfterValidator(require_no_password), WithoutPlainSecrets()]
SearchSpace = Annotated[dict[str, Any], WithoutPlainSecrets()]
MoreTrainers = list[TrainerChoice]


class ScalingSection(Section, ScalingConfig):
    """What each worker gets, and where workers are placed."""

    hidden = ("num_workers", "runtime_env")


class DivergenceSection(Section, DivergenceConfig):
    """When a training counts as diverged, and ends. Without a metric, never."""

    metric: str = Field(
        default="",
        description="A reported metric of which a low value is better, such as loss. Empty: none is watched.",
    )

    @model_validator(mode="before")
    @classmethod
    def _take_metric(cls, given: Any) -> Any:
        """In Python, to pass the settings is to want them, also where the metric is the default one."""
        is_plain = isinstance(given, DivergenceConfig) and not isinstance(given, cls)
        return {**dict(given)} if is_plain else given


class RunSection(Section, RunConfig):
    """Where the training is kept, and when it ends."""

    hidden = ("name", "callbacks", "checkpoint_config", "failure_config", "runtime_env")

    divergence: DivergenceSection | None = Field(
        default=DivergenceSection(), description="When a training counts as diverged, and ends."
    )


class CheckpointSection(Section, CheckpointConfig):
    """Which checkpoints are kept."""


class FailureSection(Section, FailureConfig):
    """What is retried."""


class EnvironmentSection(Section, RuntimeEnv):
    """What workers need besides what their machines have: packages, variables and code."""

    env_vars: Annotated[dict[str, str] | None, WithoutPlainSecrets()] = Field(
        default=None,
        description="Environment variables of the workers, e.g. {'NCCL_DEBUG': 'INFO'}. A secret one is "
        "{{ prefect.blocks.secret.NAME }}, which refers to a Secret block.",
    )


class DataSection(Section, DataConfig):
    """Which datasets are split across the workers."""

    hidden = ("execution_options",)


class SplitSection(Section, SplitSpec):
    """Which rows are for training, and which for validation."""


class StepSection(Section, StepSpec):
    """One of Ray Data's preprocessors."""


def combined(settings: type[C], section: Section, name: str, /, **above: Any) -> C:
    """The settings that a section describes, with those that the form asks for above it.

    Args:
        settings: The class of the settings.
        section: The section.
        name: What the section is called, for errors.
        above: Values that are not in the section, by setting. What is empty, or the default, was not typed in.

    Raises:
        InvalidArgumentError: in Python, a setting was passed both ways.

    Example:
        >>> combined(ScalingConfig, ScalingSection(use_gpu=True), "scaling_config", num_workers=2).total_resources
        {'CPU': 2.0, 'GPU': 2.0}
    """
    values = {each: getattr(section, each) for each in section.model_fields_set}
    for each, value in above.items():
        value = plain(value) if isinstance(value, Section) else value
        if value in (None, "") or value == settings.model_fields[each].get_default(call_default_factory=True):
            continue
        if values.get(each, value) != value:
            raise InvalidArgumentError(
                f"{each} is {value!r}, but {each} of {name} is {values[each]!r}. Pass one of them."
            )
        values[each] = value
    return settings(**values)


def scaling_config_of(section: ScalingSection, num_workers: int) -> ScalingConfig:
    """How many workers there are, and what each gets."""
    return combined(ScalingConfig, section, "scaling_config", num_workers=num_workers)


def run_config_of(
    section: RunSection,
    name: str,
    checkpoint_config: CheckpointSection,
    failure_config: FailureSection,
    runtime_env: EnvironmentSection,
) -> RunConfig:
    """A training's name, where it is kept, when it ends, and what is retried."""
    watched = section.divergence
    divergence = plain(watched) if watched is not None and watched.metric else None
    return combined(
        RunConfig,
        section.model_copy(update={"divergence": divergence}),
        "run_config",
        name=name,
        checkpoint_config=checkpoint_config,
        failure_config=failure_config,
        runtime_env=runtime_env if runtime_env.model_fields_set else None,
    )


def located_datasets(datasets: DatasetPaths) -> DatasetPaths:
    """The same datasets, with the paths of those that belong to the demonstration."""
    return {name: located(given) if isinstance(given, str) else given for name, given in datasets.items()}
