"""What a form asks for a scikit-learn training."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from trainlib._rooms import Room
from trainlib._trainable import import_function, load_trainable, path_of
from trainlib._trainer_form import OwnArgumentsForm
from trainlib.config import ScalingConfig
from trainlib.sklearn._arguments import require_estimator
from trainlib.sklearn._room import ROOM

__all__ = ["SklearnForm"]

_Switch = Literal["auto", "yes", "no"]
_SWITCH: dict[_Switch, bool | None] = {"auto": None, "yes": True, "no": False}


class SklearnForm(OwnArgumentsForm):
    """Fits an estimator of scikit-learn in one process."""

    room: ClassVar[Room] = ROOM

    kind: Literal["sklearn"] = "sklearn"
    estimator: str = Field(
        description="The estimator's class, as module:class, e.g. sklearn.ensemble:RandomForestClassifier. A class of your own is "
        "marked with @trainlib.trainable, or its module is allowed where the flow runs.",
        json_schema_extra={"position": 0},
    )
    params: dict[str, Any] = Field(
        default={}, description="The estimator's parameters, e.g. {'max_depth': 3}.", json_schema_extra={"position": 1}
    )
    label_column: str = Field(
        default="",
        description="The column to predict. In a pipeline: empty for the target of its data.",
        json_schema_extra={"position": 2},
    )
    scoring: dict[str, str] = Field(
        default={},
        description="What scores the datasets besides train: names for the metrics, and scikit-learn's scorers, e.g. {'auc': 'roc_auc'}. "
        "Empty: the estimator's own score.",
        json_schema_extra={"position": 3},
    )
    cv: int = Field(
        default=0,
        ge=0,
        description="How many folds the training data are split into for cross-validation. 0: none.",
        json_schema_extra={"position": 4},
    )
    return_train_score_cv: bool = Field(
        default=False,
        description="Whether cross-validation also scores what each fold was fitted on.",
        json_schema_extra={"position": 5},
    )
    parallelize_cv: _Switch = Field(
        default="auto",
        description="Whether the folds are fitted side by side, rather than each with all cores. auto: if the estimator has no parameter "
        "n_jobs or thread_count.",
        json_schema_extra={"position": 6},
    )
    set_estimator_cpus: bool = Field(
        default=True,
        description="Whether these parameters are set to the number of cores.",
        json_schema_extra={"position": 7},
    )
    fit_params: dict[str, Any] = Field(
        default={}, description="Further arguments of the estimator's fit().", json_schema_extra={"position": 8}
    )

    def arguments(self) -> dict[str, Any]:
        return {
            "estimator": _estimator(self.estimator, self.params),
            "params": self.params,
            "label_column": self.label_column or None,
            "scoring": self.scoring or None,
            "cv": self.cv or None,
            "return_train_score_cv": self.return_train_score_cv or None,
            "parallelize_cv": _SWITCH[self.parallelize_cv],
            "set_estimator_cpus": None if self.set_estimator_cpus else False,
            "fit_params": self.fit_params or None,
        }

    def gang_of(self, asked: ScalingConfig) -> ScalingConfig:
        """One process, which gets what all workers together would have."""
        if asked.num_workers == 1:
            return asked
        alone = {"num_workers": 1, "resources_per_worker": asked.total_resources, "trainer_resources": None}
        return ScalingConfig(**{**{name: getattr(asked, name) for name in asked.model_fields_set}, **alone})

    @classmethod
    def showing(cls, trainer: Any, shown: Callable[[Any], Any]) -> Self:
        given = trainer.train_loop_config
        scoring, cv = given.get("scoring"), given.get("cv")
        if not isinstance(scoring, dict):
            named = scoring if isinstance(scoring, (list, tuple)) else [scoring] if scoring is not None else []
            scoring = {str(shown(each)): each for each in named}
        return cls.model_construct(  # type: ignore[return-value]
            kind="sklearn",
            estimator=path_of(type(given["estimator"])),
            params=shown(dict(given.get("params") or {})),
            label_column=given.get("label_column") or "",
            scoring={name: str(shown(each)) for name, each in scoring.items()},
            cv=shown(cv) if cv is not None else 0,
            return_train_score_cv=bool(given.get("return_train_score_cv")),
            parallelize_cv=next(name for name, each in _SWITCH.items() if each is given.get("parallelize_cv")),
            set_estimator_cpus=given.get("set_estimator_cpus") is not False,
            fit_params=shown(dict(given.get("fit_params") or {})),
        )


def _estimator(path: str, params: dict[str, Any]) -> Any:
    """An estimator of the class that a form names: one of scikit-learn's, or one that forms may name.

    Args:
        path: The class.
        params: Its parameters. Those without a default are needed to make it.

    Raises:
        ValueError: there is no such class, it may not be used, it is no estimator, or it needs other parameters.
    """
    is_of_sklearn = path.partition(":")[0].partition(".")[0] == "sklearn"
    try:
        found = import_function(path) if is_of_sklearn else load_trainable(path, "estimator")
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"estimator is {path!r}, but it cannot be loaded ({error}). Write it as module:class, e.g. "
            "sklearn.ensemble:RandomForestClassifier"
        ) from error
    if not (isinstance(found, type) and callable(getattr(found, "fit", None)) and hasattr(found, "get_params")):
        raise ValueError(f"estimator is {path!r}, which is not an estimator class")
    needed = [
        name
        for name, each in inspect.signature(found).parameters.items()
        if each.default is each.empty and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if missing := [name for name in needed if name not in params]:
        raise ValueError(
            f"estimator is {path!r}, which needs {', '.join(missing)}. If that is a number or a text, put it into params. Otherwise name "
            "a subclass with defaults, marked with @trainlib.trainable"
        )
    made = found(**{name: params[name] for name in needed})
    require_estimator(made)
    return made
