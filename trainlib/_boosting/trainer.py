"""What XGBoost's and LightGBM's trainers do with the arguments that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from trainlib._boosting.arguments import (
    columns_named_in,
    given_params,
    require_label,
    require_labels_in_files,
    require_matrix_arguments,
    require_names,
    require_names_in_frame,
    require_no_train_arguments,
    require_params,
    require_patience,
    require_rounds,
    require_train,
    with_all_split,
)
from trainlib._boosting.library import Library
from trainlib.errors import InvalidArgumentError
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from trainlib._data.sources import Source

__all__ = ["BoostedTreesTrainer"]

_ROUNDS = 10
"""How many, if nobody says so."""


class BoostedTreesTrainer(DataParallelTrainer):
    """Trains one model on the rows of all workers, from parameters or with a training function of the user's."""

    library: ClassVar[Library]

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Make a trainer.

        Args:
            given: The arguments, by name. They may be the ``locals()`` of a subclass's constructor.

        Raises:
            InvalidArgumentError: one of them cannot be used.
            ValueError: there is nothing to learn from, or parameters contradict each other.
        """
        super().__init__(**self._checked(given))
        if self.settings.has_own_function:
            self._require_whole_queries()
            self._require_one_model()
            self._require_resumable()

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The trainer's arguments as those of DataParallelTrainer."""
        arguments, name = dict(given), type(self).__name__
        others = arguments.pop("train_kwargs")
        if not others.get("verbose_eval"):
            others.pop("verbose_eval", None)  # rounds are printed by nobody but trainlib anyway
        require_no_train_arguments(others, self.library, name, arguments)
        if arguments["train_loop_per_worker"] is None:
            datasets, params = arguments["datasets"], arguments["params"]
            if arguments["num_boost_round"] is None:
                arguments["num_boost_round"] = _ROUNDS
            require_params(params, "params", name, "{'learning_rate': 0.1}")
            arguments["params"] = params = given_params(params)
            require_rounds(arguments["num_boost_round"])
            require_train(datasets, name)
            require_matrix_arguments(arguments["dmatrix_params"] or {}, datasets, self.library, name)
            self.library.require_consistent(params, arguments["dmatrix_params"] or {})
            is_final = arguments["preprocessor"] is None  # which may make the column with the labels, or rename columns
            require_label(arguments["label_column"], datasets if is_final else {}, name)
            if is_final:
                others = self._no_features(arguments["label_column"], arguments["dmatrix_params"] or {})
                require_names_in_frame(datasets["train"], others, self.library.not_in_names)
            patience = self._patience(arguments["early_stopping_rounds"], params)
            self.library.require_possible(params, patience)
            require_patience(patience, datasets)
            arguments["dataset_config"] = with_all_split(arguments["dataset_config"], datasets)
        return self.room.base_arguments(arguments)

    def _patience(self, rounds: Any, params: dict[str, Any]) -> Any:
        """The rounds for early stopping, wherever they are given."""
        in_params = self.library.patience_in(params)
        if rounds is not None and in_params is not None and rounds != in_params:
            raise InvalidArgumentError(
                f"early_stopping_rounds is {rounds!r}, but params has {in_params!r}. Leave one of them out"
            )
        return rounds if rounds is not None else in_params

    def _require_whole_queries(self) -> None:
        """Raise an InvalidArgumentError if rows of one query would come to several workers, or queries are not known."""
        config = self.train_loop_config or {}
        params, given = config["params"], config.get("dmatrix_params") or {}
        with_queries = [name for name in self.datasets if "qid" in given.get(name, {})]
        without = [name for name in self.datasets if name not in with_queries]
        if self.library.ranks(params) and without:
            raise InvalidArgumentError(
                f"The objective {self.subject} ranks the rows of each query, but dmatrix_params does not say which rows of "
                f"{', '.join(map(repr, without))} belong together. Name the column, e.g. dmatrix_params={{{without[0]!r}: "
                "{'qid': 'query'}}"
            )
        if with_queries and self.scaling_config.num_workers > 1:
            raise InvalidArgumentError(
                f"dmatrix_params has a qid, but with {self.scaling_config.num_workers} workers the rows of a query would be split between "
                "them. Use ScalingConfig(num_workers=1, resources_per_worker={'CPU': ...}), or a training function that reads whole "
                "queries"
            )

    def _require_one_model(self) -> None:
        """Raise an InvalidArgumentError if several workers would train a model each, or none."""
        workers = self.scaling_config.num_workers
        reason = self.library.alone_with((self.train_loop_config or {})["params"])
        if reason is not None and workers > 1:
            raise InvalidArgumentError(
                f"{reason} Or use ScalingConfig(num_workers=1, resources_per_worker={{'CPU': ...}}): there are {workers} workers"
            )

    def _require_resumable(self) -> None:
        """Raise an InvalidArgumentError if there is a checkpoint to go on from, and the library cannot."""
        reason = self.library.why_not_resumed((self.train_loop_config or {})["params"])
        if reason is not None and self.resume_from_checkpoint is not None:
            raise InvalidArgumentError(f"{reason} Leave resume_from_checkpoint out, and train a new model")

    def _no_features(self, label: str, given: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """The columns that arguments name."""
        named = (columns_named_in(arguments, self.library.columns) for arguments in given.values())
        return {label, *(column for columns in named for column in columns.values())}

    def _require_names_in_files(self, sources: Mapping[str, Source]) -> None:
        config, train = self.train_loop_config or {}, sources.get("train")
        if train is not None and train.columns:
            others = self._no_features(config["label_column"], config.get("dmatrix_params") or {})
            features = [name for name in train.columns if name not in others]
            require_names(features, self.library.not_in_names, f"the dataset 'train' ({train.uri})")

    @property
    def subject(self) -> Any:
        if not self.settings.has_own_function:
            return super().subject
        return str(self.library.objective_in((self.train_loop_config or {})["params"]) or "boosted trees")

    def inspect_arguments(self) -> None:
        """That the library knows the parameters."""
        if self.settings.has_own_function:
            self.library.require_known_here((self.train_loop_config or {})["params"])

    def inspect_data(self) -> dict[str, Source]:
        """Also that files have the column with the labels, and all of the arguments."""
        self.inspect_arguments()
        config = self.train_loop_config or {}
        sources = super().inspect_data()
        if self.settings.has_own_function and self.preprocessor is None:  # which may make the column
            require_labels_in_files(config["label_column"], sources)
            self._require_names_in_files(sources)
        return sources
