"""What the pipeline is to do, as one description that is checked before anything starts."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from trainlib._data.manifest import PreprocessedData
from trainlib._data.spec import PreprocessSpec, SplitSpec
from trainlib._forms import Section
from trainlib._trainable import load_trainable
from trainlib._training.evaluating import Evaluate
from trainlib.flows.forms import MoreTrainers
from trainlib.flows.spec import Prepared, TrainSpec
from trainlib.flows.tune_spec import TuneSpec, parsed
from trainlib.trainer import InspectedTrainer
from trainlib.tune._config import TuneConfig
from trainlib.tune._trainable import Trainable

__all__ = ["Alias", "Approval", "ApprovalSection", "HeldOutSplit", "HeldOutSplitSection", "ModelName", "PipelineSpec"]


def _model_name(value: str) -> str:
    if not value.strip() or any(character in value for character in "/:"):
        raise ValueError(f"{value!r} cannot be the name of a model in MLflow: it is blank, or contains '/' or ':'")
    return value


def _alias(value: str) -> str:
    if value.lower() == "latest" or (value[:1] in "vV" and value[1:].isdigit()):
        raise ValueError(f"{value!r} has a meaning of its own in MLflow, and cannot be an alias: choose another")
    return value


ModelName = Annotated[str, AfterValidator(_model_name)]
"""The name of a registered model that MLflow accepts."""
Alias = Annotated[str, Field(pattern=r"^[\w\-]+$"), AfterValidator(_alias)]
"""An alias that MLflow accepts."""


class Approval(BaseModel):
    """Whether a person has to agree before a better model is promoted.

    Example:
        >>> Approval(required=True, within_hours=2).seconds
        7200.0
    """

    model_config = ConfigDict(extra="forbid")

    required: bool = Field(
        default=False,
        description="Ask a person before the alias is moved. The run is Paused meanwhile, and holds no workers; its page in "
        "Prefect has a button that shows both scores and asks.",
        json_schema_extra={"position": 0},
    )
    within_hours: float = Field(
        default=24.0,
        gt=0,
        le=24 * 365,
        description="How long to wait for the answer. Without one, the new version stays registered, and the alias where it is.",
        json_schema_extra={"position": 1},
    )

    @property
    def seconds(self) -> float | None:
        """How long to wait for a person. None if nobody is asked."""
        return self.within_hours * 3600 if self.required else None


class ApprovalSection(Section, Approval):
    """Whether a person has to agree before a better model is promoted."""


class HeldOutSplit(SplitSpec):
    """Which rows are for training, which for validation, and which are held out, by default a tenth.

    Example:
        >>> HeldOutSplit().summary
        'shuffle, 20% for validation, 10% for the test, seed 0'
    """

    test_size: float = Field(
        default=0.1,
        description="The share of rows that are held out: neither training nor the selection of checkpoints sees them, and "
        "versions are compared on them. 0 holds out none.",
        json_schema_extra={"position": 4},
    )


class HeldOutSplitSection(Section, HeldOutSplit):
    """Which rows are for training, which for validation, and which are held out."""


class PipelineSpec(BaseModel):
    """What to prepare, train, evaluate, register and promote."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)  # which may be a password

    data: PreprocessSpec
    train: TrainSpec
    """The training function gets the datasets 'train' and 'validation', and the target column's name in its config."""
    compare_with: MoreTrainers = Field(default_factory=list)
    """More trainers to try first."""
    param_space: dict[str, Any] = Field(default_factory=dict)
    """Settings to try first, by setting of the trainer."""
    tune_config: TuneConfig = Field(default_factory=TuneConfig)
    metric: str = Field(default="accuracy", min_length=1)
    """What ranks trials, checkpoints and versions."""
    mode: Literal["max", "min"] = "max"
    evaluate: str | None = None
    """The function that evaluates a checkpoint on the held-out rows, as module:function."""
    model_name: ModelName
    alias: Alias = "best"
    approval: Approval = Field(default_factory=Approval)

    def evaluation_function(self) -> Evaluate | None:
        """The function that evaluates a checkpoint.

        Raises:
            ValueError: it cannot be loaded or called with a checkpoint and rows, or no rows are held out for it.
        """
        if self.evaluate is None:
            return None
        function = load_trainable(self.evaluate, "evaluate")
        try:
            inspect.signature(function).bind("checkpoint", "dataset")
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"evaluate is {self.evaluate!r}, which cannot be called with a checkpoint and a dataset ({error}). Write it as "
                "def evaluate(checkpoint, dataset), and return a dict of metrics."
            ) from error
        if not self.data.split.test_size:
            raise ValueError(
                f"evaluate is {self.evaluate!r}, but no rows are held out for it. Set split.test_size, e.g. to 0.1, or leave "
                "evaluate out."
            )
        return function  # type: ignore[no-any-return]

    def require_possible(self) -> None:
        """Make all trainers and the search space once, before there are data for them.

        Raises:
            ValueError: a function cannot be loaded, a trainer cannot be made of its arguments, or a search space is not valid.
        """
        source = self.data.source
        sweep = self._sweep_on(Prepared(train=source, validation=source, target=self.data.target))
        trainable = Trainable(sweep.trainable())
        trainable.space(parsed(self.param_space))
        for trainer in trainable.trainers:
            trainer.inspect_arguments()

    @property
    def has_sweep(self) -> bool:
        """Whether there is something to try before the training."""
        return bool(self.param_space or self.compare_with)

    def sweep_on(self, data: PreprocessedData) -> TuneSpec:
        """The sweep on preprocessed data. It compares all trainers, if there are several."""
        return self._sweep_on(Prepared.of(data))

    def _sweep_on(self, prepared: Prepared) -> TuneSpec:
        config = self.tune_config.model_copy(update={"metric": self.metric, "mode": self.mode})
        return TuneSpec(
            train=self._training_on(prepared),
            compare_with=self.compare_with,
            param_space=self.param_space,
            tune_config=config,
        )

    def train_on(self, data: PreprocessedData, best: dict[str, Any]) -> InspectedTrainer:
        """The training on preprocessed data, with the settings of a sweep's best trial.

        Raises:
            ValueError: the training function cannot be loaded.
            DataError: a dataset is missing or unusable.
        """
        trainable = self.sweep_on(data).trainable()
        return (Trainable(trainable).chosen(best) if best else trainable).inspect()

    def _training_on(self, prepared: Prepared) -> TrainSpec:
        """The training. Its checkpoints are ranked by the pipeline's metric, if by no other."""
        spec = self.train.on(prepared)
        config = spec.run_config.checkpoint_config
        if config.checkpoint_score_attribute is not None:
            return spec
        ranking = {"checkpoint_score_attribute": self.metric, "checkpoint_score_order": self.mode}
        run_config = spec.run_config.model_copy(update={"checkpoint_config": config.model_copy(update=ranking)})
        return TrainSpec(**{**dict(spec), "run_config": run_config})

    def parameters(self) -> dict[str, Any]:
        """The parameters of the flow ``pipeline``."""
        return {
            "source": self.data.source,
            "data_storage_path": self.data.storage_path or "",
            "model_name": self.model_name,
            "trainer": self.train.trainer,
            "compare_with": self.compare_with,
            "target": self.data.target or "",
            "metric": self.metric,
            "mode": self.mode,
            "evaluate": self.evaluate or "",
            "num_workers": self.train.scaling_config.num_workers,
            "param_space": self.param_space,
            "num_samples": self.tune_config.num_samples,
            "steps": self.data.steps,
            "split": self.data.split,
            "alias": self.alias,
            "approval": self.approval,
            "tune_config": self.tune_config,
            "scaling_config": self.train.scaling_config,
            "run_config": self.train.run_config,
            "dataset_config": self.train.dataset_config,
        }
