"""What to tune, as a form."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from trainlib.flows.spec import TrainSpec, shown
from trainlib.tune import _sample as spaces
from trainlib.tune._config import TuneConfig
from trainlib.tune._tuner import Tuner

__all__ = ["TuneSpec"]

# What a form can say: each is written as {"name": [arguments]}, e.g. {"loguniform": [0.0001, 0.1]}.
_IN_A_FORM = {name: getattr(spaces, name) for name in spaces.__all__ if name != "sample_from"}
_OF_A_LIST = ("choice", "grid_search")


class TuneSpec(BaseModel):
    """What to train, what to try with it, and how.

    Example:
        >>> spec = TuneSpec(
        ...     train=TrainSpec(train_loop="trainlib.demo:train_digits"),
        ...     param_space={"train_loop_config": {"lr": {"loguniform": [0.001, 0.1]}}},
        ...     tune_config=TuneConfig(metric="accuracy", mode="max", num_samples=8),
        ... )
        >>> spec.title
        'TorchTrainer · 8 samples'
    """

    model_config = ConfigDict(extra="forbid")

    train: TrainSpec = Field(description="What to train, and how it is kept.", json_schema_extra={"position": 0})
    param_space: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings to try, by setting of the trainer, e.g. {'train_loop_config': {'lr': {'loguniform': "
        "[0.0001, 0.1]}, 'batch_size': {'choice': [16, 32]}}}. Also grid_search, uniform, quniform, randint, ...",
        json_schema_extra={"position": 1},
    )
    tune_config: TuneConfig = Field(
        default_factory=TuneConfig, description="How many trials, and who chooses.", json_schema_extra={"position": 2}
    )

    _tuner: Tuner | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, tuner: Tuner) -> TuneSpec:
        """Of a tuner in this process, which is then run as it is; the fields tell people what it is."""
        config = tuner.tune_config
        looks = {"search_alg": shown(config.search_alg), "scheduler": shown(config.scheduler)}
        spec = cls.model_construct(
            train=TrainSpec.of(tuner.trainer),
            param_space=shown(tuner.param_space),
            tune_config=config.model_copy(update={**looks, "trial_name_creator": None}),
        )
        spec._tuner = tuner
        return spec

    @property
    def title(self) -> str:
        """What the flow run is called after."""
        tuner = self.tuner()
        samples = self.tune_config.num_samples
        total = tuner.plan.total
        if total is None:
            return f"{tuner.name} · {self.tune_config.time_budget_s:g} s"
        return f"{tuner.name} · {total} trials" if total != samples else f"{tuner.name} · {samples} samples"

    def tuner(self) -> Tuner:
        """The tuner that this describes.

        Raises:
            ValueError: there is no such function, or the space makes no sense.
        """
        if self._tuner is None:
            self._tuner = Tuner(
                self.train.trainer(), param_space=parsed(self.param_space), tune_config=self.tune_config
            )
        return self._tuner


def parsed(node: Any) -> Any:
    """A space as it is written in a form, as objects.

    Example:
        >>> parsed({"lr": {"uniform": [0, 1]}, "layers": {"grid_search": [1, 2]}})
        {'lr': Float(lower=0, upper=1, log=False, q=None), 'layers': {'grid_search': [1, 2]}}
    """
    if isinstance(node, list):
        return [parsed(item) for item in node]
    if not isinstance(node, dict):
        return node
    name = next(iter(node), None)
    if len(node) == 1 and name in _IN_A_FORM and isinstance(node[name], list):
        arguments = parsed(node[name])
        try:
            return _IN_A_FORM[name](arguments) if name in _OF_A_LIST else _IN_A_FORM[name](*arguments)
        except TypeError as error:
            raise ValueError(f"{{{name!r}: {node[name]}}} is no space: {error}") from error
    return {key: parsed(item) for key, item in node.items()}
