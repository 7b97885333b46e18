"""What a form asks for a scikit-learn training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from trainlib._rooms import Room
from trainlib._trainable import import_function, load_trainable, path_of
from trainlib._trainer_form import OwnArgumentsForm
from trainlib.sklearn._arguments import require_estimator
from trainlib.sklearn._room import ROOM

__all__ = ["SklearnForm"]


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

    def arguments(self) -> dict[str, Any]:
        return {
            "estimator": _estimator(self.estimator),
            "params": self.params,
            "label_column": self.label_column or None,
            "scoring": self.scoring or None,
            "cv": self.cv or None,
        }

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
        )


def _estimator(path: str) -> Any:
    """An estimator of the class that a form names: one of scikit-learn's, or one that forms may name.

    Raises:
        ValueError: there is no such class, it may not be used, or it is no estimator.
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
        raise ValueError(f"estimator is {path!r}, which is no class of estimators")
    made = found()
    require_estimator(made)
    return made
