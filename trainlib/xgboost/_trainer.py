"""The trainer for XGBoost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._boosting.trainer import BoostedTreesTrainer
from trainlib._data.config import DataConfig
from trainlib._settings import TrainLoop
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.xgboost._config import XGBoostConfig
from trainlib.xgboost._library import LIBRARY
from trainlib.xgboost._room import ROOM

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor


__all__ = ["XGBoostTrainer"]


class XGBoostTrainer(BoostedTreesTrainer):
    """Trains one XGBoost model on all workers together. Each has its share of the rows, and they meet in XGBoost's own collective.

    Every round is reported, with the metrics of each dataset: ``train-logloss``, ``valid-error`` and so on.

    Example:
        >>> from trainlib import CheckpointConfig, RunConfig, ScalingConfig
        >>> from trainlib.xgboost import XGBoostTrainer
        >>> trainer = XGBoostTrainer(
        ...     params={"objective": "binary:logistic", "eval_metric": ["logloss", "error"]},
        ...     label_column="target",
        ...     datasets={"train": lambda: "train.parquet", "valid": lambda: "valid.parquet"},
        ...     num_boost_round=20,
        ...     scaling_config=ScalingConfig(num_workers=2),
        ...     run_config=RunConfig(checkpoint_config=CheckpointConfig(checkpoint_frequency=5)),
        ... )
        >>> trainer.fit().metrics["valid-error"]  # doctest: +SKIP
        0.031
    """

    room = ROOM
    library = LIBRARY

    def __init__(
        self,
        train_loop_per_worker: TrainLoop | None = None,
        *,
        train_loop_config: dict[str, Any] | None = None,
        params: dict[str, Any] | None = None,
        label_column: str | None = None,
        num_boost_round: int | None = None,
        dmatrix_params: dict[str, dict[str, Any]] | None = None,
        early_stopping_rounds: int | None = None,
        xgboost_config: XGBoostConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
        **train_kwargs: Any,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            train_loop_per_worker: a training function of your own, instead of ``params`` and ``label_column``. It finds
                ``xgboost.collective`` set up, so that ``xgboost.train`` in it trains on all workers together.
                :class:`RayTrainReportCallback` reports its rounds.
            train_loop_config: what this function is called with.
            params: XGBoost's parameters. The number of threads is that of the worker's CPUs. A parameter that XGBoost does not
                know is an error, unless ``validate_parameters`` is False. ``max_bin`` holds for all datasets.
                ``booster="gblinear"``, ``tree_method="exact"`` (``updater="grow_colmaker"``) and ``objective="survival:cox"`` take one
                worker.
            label_column: the column to predict. All other columns are features. Columns of categories, which are text, have the same
                codes on all workers and in all datasets.
            num_boost_round: how many rounds the model has in the end, with those of a checkpoint that it goes on from. Default: 10.
            dmatrix_params: arguments for the matrix of a dataset, by its name, e.g. ``{"train": {"weight": "w"}}``. ``weight``,
                ``base_margin``, ``label_lower_bound``, ``label_upper_bound`` and ``qid``, the query that a row belongs to, name
                columns, which are not used as features then. With ``qid`` there is one worker: others would split queries. What is
                ``missing`` in ``train`` is so for a served model, too.
            early_stopping_rounds: the training ends when the last metric of the last dataset has not improved for so many rounds.
                The model has all rounds, and knows its ``best_iteration``, with which it is served. The last report has the metrics of
                the best round.
            xgboost_config: how the workers find each other.
            datasets: ``train``, and any others to evaluate after each round. All are split across the workers.

            train_kwargs: other arguments of ``xgboost.train`` are an error that says what to use instead.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        super().__init__(locals())
