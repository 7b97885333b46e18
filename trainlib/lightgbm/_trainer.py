"""The trainer for LightGBM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._boosting.trainer import BoostedTreesTrainer
from trainlib._data.config import DataConfig
from trainlib._settings import TrainLoop
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.lightgbm._config import LightGBMConfig
from trainlib.lightgbm._library import LIBRARY
from trainlib.lightgbm._room import ROOM

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor


__all__ = ["LightGBMTrainer"]


class LightGBMTrainer(BoostedTreesTrainer):
    """Trains one LightGBM model on all workers together. Each has its share of the rows, and they meet in LightGBM's own network.

    Every round is reported, with the metrics of each dataset: ``train-binary_logloss``, ``valid-auc`` and so on. A metric is the mean over
    the workers, by their rows; an area under a curve is that of the workers' own rows, as it is with XGBoost.

    Example:
        >>> from trainlib import CheckpointConfig, RunConfig, ScalingConfig
        >>> from trainlib.lightgbm import LightGBMTrainer
        >>> trainer = LightGBMTrainer(
        ...     params={"objective": "binary", "metric": ["binary_logloss", "auc"]},
        ...     label_column="target",
        ...     datasets={"train": lambda: "train.parquet", "valid": lambda: "valid.parquet"},
        ...     num_boost_round=20,
        ...     scaling_config=ScalingConfig(num_workers=2),
        ...     run_config=RunConfig(checkpoint_config=CheckpointConfig(checkpoint_frequency=5)),
        ... )
        >>> trainer.fit().metrics["valid-auc"]  # doctest: +SKIP
        0.993
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
        lightgbm_config: LightGBMConfig | None = None,
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
            train_loop_per_worker: a training function of your own, instead of ``params`` and ``label_column``. With
                :func:`get_network_params`, ``lightgbm.train`` in it trains on all workers together.
                :class:`RayTrainReportCallback` reports its rounds.
            train_loop_config: what this function is called with.
            params: LightGBM's parameters. The number of threads is that of the worker's CPUs. A parameter, an objective or a metric
                that LightGBM does not know is an error. Where neither ``force_row_wise`` nor ``force_col_wise`` is given, histograms of up to 128
                columns are built row by row. Bins are found in rows of all workers. ``linear_tree`` takes one worker.
            label_column: the column to predict. All other columns are features.
            num_boost_round: how many rounds the model has in the end, with those of a checkpoint that it goes on from. Default: 10.
            dmatrix_params: arguments for the ``lightgbm.Dataset`` of a dataset, by its name, e.g. ``{"train": {"weight": "w"}}``.
                ``weight``, ``init_score`` and ``qid``, the query that a row belongs to, name columns, which then are features of no
                dataset. With ``qid`` there is one worker: others would split queries. An ``init_score`` also counts in a training that
                goes on from a checkpoint.
            early_stopping_rounds: the training ends when a metric of a dataset other than ``train`` has not improved for so many
                rounds. The model ends with the best round then, and the last report has the metrics of that round. They are those of
                all workers together.
            lightgbm_config: how the workers find each other.
            datasets: ``train``, and any others to evaluate after each round. All are split across the workers.

            train_kwargs: other arguments of ``lightgbm.train`` are an error that says what to use instead.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.
        """
        super().__init__(locals())
