"""What XGBoost's and LightGBM's trainers do with the arguments that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trainlib._boosting.arguments import (
    require_label,
    require_labels_in_files,
    require_params,
    require_rounds,
    require_train,
    with_all_split,
)
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from trainlib._data.sources import Source

__all__ = ["BoostedTreesTrainer"]

_ROUNDS = 10
"""How many, if nobody says so."""


class BoostedTreesTrainer(DataParallelTrainer):
    """Trains one model on the rows of all workers, from parameters or with a training function of the user's."""

    def checked(self, given: dict[str, Any], require_possible: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """The trainer's arguments as those of DataParallelTrainer.

        Args:
            given: The arguments, by name. They may be the ``locals()`` of the constructor.
            require_possible: Raises a ValueError if the library's parameters cannot be right, whatever the data are.

        Raises:
            InvalidArgumentError: one of them cannot be used.
            ValueError: there is nothing to learn from, or parameters contradict each other.
        """
        arguments = dict(given)
        if arguments["train_loop_per_worker"] is None:
            name, datasets, params = type(self).__name__, arguments["datasets"], arguments["params"]
            if arguments["num_boost_round"] is None:
                arguments["num_boost_round"] = _ROUNDS
            require_params(params, "params", name)
            require_params(arguments["dmatrix_params"] or {}, "dmatrix_params", name)
            require_rounds(arguments["num_boost_round"])
            require_train(datasets, name)
            require_label(arguments["label_column"], datasets, name)
            require_possible(params)
            arguments["dataset_config"] = with_all_split(arguments["dataset_config"])
        return self.room.base_arguments(arguments)

    @property
    def subject(self) -> Any:
        if not self.settings.has_own_function:
            return super().subject
        return str((self.train_loop_config or {})["params"].get("objective", "boosted trees"))

    def inspect_data(self) -> dict[str, Source]:
        """Also that files have the column with the labels."""
        sources = super().inspect_data()
        if self.settings.has_own_function and self.preprocessor is None:  # which may make the column
            require_labels_in_files((self.train_loop_config or {})["label_column"], sources)
        return sources
