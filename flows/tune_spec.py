"""What to tune, as a form."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from trainlib.flows._shown import shown
from trainlib.flows.spec import TrainSpec
from trainlib.tune import _sample as spaces
from trainlib.tune._config import TuneConfig
from trainlib.tune._tuner import Tuner

__all__ = ["TuneSpec"]

# The search spaces that a form can contain, written as {"name": [arguments]}, e.g. {"loguniform": [0.0001, 0.1]}.
_SPACES = {name: getattr(spaces, name) for name in spaces.__all__ if name != "sample_from"}
_WITH_ONE_LIST = ("choice", "grid_search")


class TuneSpec(BaseModel):
    """What to train, which settings to try, and how to choose them.

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

    train: TrainSpec = Field(
        description="What to train, on how many workers, and where it is kept.", json_schema_extra={"position": 0}
    )
    param_space: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings to try, by setting of the trainer, e.g. {'train_loop_config': {'lr': {'loguniform': "
        "[0.0001, 0.1]}, 'batch_size': {'choice': [16, 32]}}}. Also grid_search, uniform, quniform, randint, ...",
        json_schema_extra={"position": 1},
    )
    tune_config: TuneConfig = Field(
        default_factory=TuneConfig,
        description="What to optimise, how many trials to run, and how to choose them.",
        json_schema_extra={"position": 2},
    )

    _tuner: Tuner | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, tuner: Tuner) -> TuneSpec:
        """The form that shows a tuner of this process. :meth:`tuner` gives that very tuner."""
        config = tuner.tune_config
        as_text = {"search_alg": shown(config.search_alg), "scheduler": shown(config.scheduler)}
        spec = cls.model_construct(
            train=TrainSpec.of(tuner.trainer),
            param_space=shown(tuner.param_space),
            tune_config=config.model_copy(update={**as_text, "trial_name_creator": None}),
        )
        spec._tuner = tuner
        return spec

    @property
    def title(self) -> str:
        """The name of the flow run."""
        tuner = self.tuner()
        samples = self.tune_config.num_samples
        total = tuner.plan.total
        if total is None:
            return f"{tuner.name} · {self.tune_config.time_budget_s:g} s"
        return f"{tuner.name} · {total} trials" if total != samples else f"{tuner.name} · {samples} samples"

    def tuner(self) -> Tuner:
        """The tuner that this form describes.

        Raises:
            ValueError: the training function cannot be loaded, or the search space is not valid.
        """
        if self._tuner is None:
            self._tuner = Tuner(
                self.train.trainer(), param_space=parsed(self.param_space), tune_config=self.tune_config
            )
        return self._tuner


def parsed(node: Any) -> Any:
    """A search space from a form, with the objects of ``trainlib.tune`` in the place of their names.

    Example:
        >>> parsed({"lr": {"uniform": [0, 1]}, "layers": {"grid_search": [1, 2]}})
        {'lr': Float(lower=0, upper=1, log=False, q=None), 'layers': {'grid_search': [1, 2]}}
    """
    if isinstance(node, list):
        return [parsed(item) for item in node]
    if not isinstance(node, dict):
        return node
    name = next(iter(node), None)
    if len(node) == 1 and name in _SPACES and isinstance(node[name], list):
        arguments = parsed(node[name])
        try:
            return _SPACES[name](arguments) if name in _WITH_ONE_LIST else _SPACES[name](*arguments)
        except TypeError as error:
            raise ValueError(f"{{{name!r}: {node[name]}}} is not a valid search space: {error}") from error
    return {key: parsed(item) for key, item in node.items()}
