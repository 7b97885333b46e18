"""The trainer for scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._boosting.arguments import require_label, require_labels_in_files, require_train
from trainlib._data.config import DataConfig
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.errors import InvalidArgumentError
from trainlib.sklearn import _arguments as arguments
from trainlib.sklearn._config import SklearnConfig
from trainlib.sklearn._room import ROOM
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

    from trainlib._data.sources import Source

__all__ = ["SklearnTrainer"]

_SWITCHES = ("return_train_score_cv", "parallelize_cv", "set_estimator_cpus")


class SklearnTrainer(DataParallelTrainer):
    """Fits an estimator of scikit-learn in one process, with all cores that it was given.

    The metrics are reported once, after fitting: ``fit_time``; for each dataset besides ``train``, its ``test_score`` (or
    ``test_<scorer>``, if there are several) and ``score_time``, under its name; and with ``cv``, those of all folds with their
    mean and deviation, e.g. ``test_score_mean``, under ``cv``. Scores are there a second time as ``<dataset>-<scorer>``, e.g.
    ``valid-accuracy``, which is how boosted trees name theirs, so that one sweep can compare them.

    A retry starts over: an estimator that is half fitted cannot be saved.

    Example:
        >>> import pandas as pd
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from trainlib import ScalingConfig
        >>> from trainlib.sklearn import SklearnTrainer
        >>> rows = pd.DataFrame({"x": range(8), "y": [0, 0, 0, 0, 1, 1, 1, 1]})
        >>> trainer = SklearnTrainer(
        ...     estimator=RandomForestClassifier(n_estimators=10),
        ...     label_column="y",
        ...     datasets={"train": rows, "valid": rows},
        ...     scaling_config=ScalingConfig(trainer_resources={"CPU": 2}),
        ... )
        >>> trainer.fit().metrics["valid"]["test_score"]  # doctest: +SKIP
        1.0
    """

    room = ROOM

    def __init__(
        self,
        estimator: Any = None,
        *,
        label_column: str | None = None,
        params: dict[str, Any] | None = None,
        scoring: Any = None,
        cv: Any = None,
        return_train_score_cv: bool | None = None,
        parallelize_cv: bool | None = None,
        set_estimator_cpus: bool | None = None,
        fit_params: dict[str, Any] | None = None,
        sklearn_config: SklearnConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
        **more_fit_params: Any,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            estimator: what is fitted: any estimator of scikit-learn or like those, also a pipeline. It stays as it is.
            label_column: the column to predict. All others are features. Only estimators that need no labels do without.
            params: parameters that are set on the estimator first, e.g. for a sweep: ``{"max_depth": 3}``.
            scoring: what the datasets besides ``train``, and the folds of ``cv``, are scored with: the name of a scorer, a function of
                estimator, rows and labels, a list of these, or a dict of names for the metrics and what each is scored with. Default:
                the estimator's own score.
            cv: how ``train`` is also split for cross-validation: the number of folds, or one of scikit-learn's splitters. A
                column ``cv_groups`` has the groups that are not to be divided. Default: no cross-validation.
            return_train_score_cv: whether cross-validation also scores what each fold was fitted on. Default: no.
            parallelize_cv: whether the folds are fitted side by side, rather than each with all cores. Default: if the estimator
                has no parameter ``n_jobs`` or ``thread_count``.
            set_estimator_cpus: whether these parameters are set to the number of cores. Default: yes.
            fit_params: further arguments of the estimator's ``fit()``. They may also be passed by keywords, as to Ray's trainer.
            sklearn_config: there is nothing to set.
            scaling_config: the cores of the one process: ``ScalingConfig(trainer_resources={"CPU": 4})``.
            datasets: ``train``, and any others to score the fitted estimator on, also without labels, if it can do that.
            dataset_config: how datasets are read. None is split: there is one process.
            resume_from_checkpoint: not possible: fitting starts at the beginning.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        given = dict(locals())
        del given["more_fit_params"]
        ROOM.require_installed()
        name = type(self).__name__
        arguments.require_estimator(estimator)
        arguments.require_params(params or {}, estimator)
        fit_params = arguments.merged_fit_params(fit_params, more_fit_params, given)
        given["fit_params"] = fit_params or None
        arguments.require_fit_params(fit_params, estimator)
        arguments.require_label_if_needed(label_column, estimator, fit_params)
        arguments.require_scoring(scoring)
        arguments.require_cv(cv, estimator)
        for switch in _SWITCHES:
            if given[switch] is not None and not isinstance(given[switch], bool):
                raise InvalidArgumentError(f"{switch} is {given[switch]!r}: pass True or False")
        require_train(datasets, name)
        if "cv" in (datasets or {}):
            raise ValueError(
                "datasets: 'cv' is where the scores of cross-validation go. Give that dataset another name"
            )
        if label_column is not None:
            require_label(label_column, (datasets or {}) if preprocessor is None else {}, name)
            if preprocessor is None:  # which may make the column, or classes
                arguments.require_classes_in_frame((datasets or {})["train"], estimator, label_column)
        arguments.require_scorable(datasets or {}, estimator, label_column, scoring, cv)
        if resume_from_checkpoint is not None:
            raise ValueError(
                f"{name} cannot start from a checkpoint: scikit-learn fits from the beginning. Leave resume_from_checkpoint out"
            )
        given["scaling_config"] = arguments.one_process(scaling_config)
        given["dataset_config"] = arguments.whole_datasets(dataset_config)
        super().__init__(**ROOM.base_arguments(given))

    @property
    def subject(self) -> Any:
        return (self.train_loop_config or {})["estimator"]

    def inspect_data(self) -> dict[str, Source]:
        """Also that files have the column with the labels."""
        sources = super().inspect_data()
        label = (self.train_loop_config or {}).get("label_column")
        if label is not None and self.preprocessor is None:  # which may make the column
            require_labels_in_files(label, sources)
        return sources
