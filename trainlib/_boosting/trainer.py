"""What XGBoost's and LightGBM's trainers do with the arguments that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from trainlib._boosting.arguments import (
    require_label,
    require_labels_in_files,
    require_matrix_arguments,
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
            require_rounds(arguments["num_boost_round"])
            require_train(datasets, name)
            require_matrix_arguments(arguments["dmatrix_params"] or {}, datasets, self.library, name)
            self.library.require_consistent(params, arguments["dmatrix_params"] or {})
            require_label(arguments["label_column"], datasets, name)
            patience = self._patience(arguments["early_stopping_rounds"], params)
            self.library.require_possible(params, patience)
            require_patience(patience, datasets)
            arguments["dataset_config"] = with_all_split(arguments["dataset_config"])
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
        return sources
