"""What to tune: what a form asks for, put together."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from trainlib._forms import Section
from trainlib._trainer_form import form_showing
from trainlib.flows._shown import shown
from trainlib.flows.forms import MoreTrainers, combined
from trainlib.flows.spec import TrainSpec
from trainlib.tune import _sample as spaces
from trainlib.tune._config import SchedulerName, TuneConfig
from trainlib.tune._search import SearchName
from trainlib.tune._tuner import Tuner

__all__ = ["TuneSection", "TuneSpec"]

# The search spaces that a form can contain, written as {"name": [arguments]}, e.g. {"loguniform": [0.0001, 0.1]}.
_SPACES = {name: getattr(spaces, name) for name in spaces.__all__ if name != "sample_from"}
_WITH_ONE_LIST = ("choice", "grid_search")


class TuneSection(Section, TuneConfig):
    """How many trials run at once, and for how long."""

    hidden = ("metric", "mode", "num_samples", "search_alg", "scheduler")


class TuneSpec(BaseModel):
    """What to train, which settings to try, and how to choose them.

    Example:
        >>> spec = TuneSpec(
        ...     train=TrainSpec(trainer={"kind": "torch", "train_loop": "trainlib.demo:train_digits"}),
        ...     param_space={"train_loop_config": {"lr": {"loguniform": [0.001, 0.1]}}},
        ...     tune_config=TuneConfig(metric="accuracy", mode="max", num_samples=8),
        ... )
        >>> spec.tuner().plan.total
        8
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)  # which may be a password

    train: TrainSpec = Field(description="What to train, on how many workers, and where it is kept.")
    compare_with: MoreTrainers = Field(
        default_factory=list, description="More trainers: each is tried as the first one is, on the same data."
    )
    param_space: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings to try, by setting of the trainer, e.g. {'train_loop_config': {'lr': {'loguniform': "
        "[0.0001, 0.1]}, 'batch_size': {'choice': [16, 32]}}}. Also grid_search, uniform, quniform, randint, ...",
    )
    tune_config: TuneConfig = Field(
        default_factory=TuneConfig,
        description="What to optimise, how many trials to run, and how to choose them.",
    )

    _tuner: Tuner | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, tuner: Tuner) -> TuneSpec:
        """The form that shows a tuner of this process. :meth:`tuner` gives that very tuner."""
        config = tuner.tune_config
        as_text = {
            name: shown(getattr(config, name))
            for name in ("search_alg", "scheduler")
            if name in config.model_fields_set
        }
        spec = cls.model_construct(
            train=TrainSpec.of(tuner.trainer),
            compare_with=[form_showing(trainer, shown) for trainer in tuner.trainers[1:]],
            param_space=shown(tuner.param_space),
            tune_config=config.model_copy(update=as_text),
        )
        spec.train.trainer._given = tuner
        return spec

    @classmethod
    def of_parameters(
        cls,
        train: TrainSpec,
        compare_with: MoreTrainers,
        param_space: dict[str, Any],
        tune_config: TuneSection,
        **above: Any,
    ) -> TuneSpec:
        """What the parameters of the flow ``sweep`` describe. ``above`` are the settings that are not in the section.

        Raises:
            ValueError: the settings do not go together.
        """
        if train.trainer._given is not None:
            return cls.model_construct(train=train)
        return cls(
            train=train,
            compare_with=compare_with,
            param_space=param_space,
            tune_config=combined(TuneConfig, tune_config, "tune_config", **above),
        )

    def parameters(self) -> dict[str, Any]:
        """The parameters of the flow ``sweep`` for a tuner of this process, for people to read in Prefect."""
        typed = {name: getattr(self.tune_config, name) for name in self.tune_config.model_fields_set}
        # Those that a form asks for above the section. An object in the place of a name is shown in the section.
        names = {"search_alg": SearchName, "scheduler": SchedulerName}
        above = {
            name: typed.pop(name)
            for name in TuneSection.hidden
            if typed.get(name) is not None and (name not in names or typed[name] in get_args(names[name]))
        }
        tuner: Tuner = self.train.trainer._given
        return {
            **self.train.parameters(),
            **above,
            "name": tuner.run_config.name or "",
            "compare_with": self.compare_with,
            "param_space": self.param_space,
            "tune_config": TuneSection.model_construct(**typed),
        }

    def tuner(self) -> Tuner:
        """The tuner that this form describes.

        Raises:
            ValueError: the training function cannot be loaded, or the search space is not valid.
        """
        given = self.train.trainer._given
        if isinstance(given, Tuner):
            return given
        if self._tuner is None:
            self._tuner = Tuner(self.trainable(), param_space=parsed(self.param_space), tune_config=self.tune_config)
        return self._tuner

    def trainable(self) -> Any:
        """What is tuned: the trainer, or a grid of all of them.

        Raises:
            ValueError: a training function cannot be loaded.
        """
        if not self.compare_with:
            return self.train.build()
        return spaces.grid_search([self.train.by(form).build() for form in (self.train.trainer, *self.compare_with)])


def parsed(node: Any, path: str = "param_space") -> Any:
    """A search space from a form, with the objects of ``trainlib.tune`` in the place of their names.

    Raises:
        ValueError: a search space cannot be made of its arguments. The message begins with the path to it.

    Example:
        >>> parsed({"lr": {"uniform": [0, 1]}, "layers": {"grid_search": [1, 2]}})
        {'lr': Float(lower=0, upper=1, log=False, q=None), 'layers': {'grid_search': [1, 2]}}
    """
    if isinstance(node, list):
        return [parsed(item, f"{path}[{index}]") for index, item in enumerate(node)]
    if not isinstance(node, dict):
        return node
    name = next(iter(node), None)
    if len(node) == 1 and name in _SPACES and isinstance(node[name], list):
        arguments = parsed(node[name], f"{path}[{name!r}]")
        try:
            return _SPACES[name](arguments) if name in _WITH_ONE_LIST else _SPACES[name](*arguments)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is {node}, which is not a valid search space: {error}") from error
    return {key: parsed(item, f"{path}[{key!r}]") for key, item in node.items()}
