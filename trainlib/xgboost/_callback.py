"""Reports the rounds of an ``xgboost.train`` that the user calls. Imports xgboost, so it is imported when it is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import xgboost

from trainlib._boosting.reporting import RoundReports
from trainlib.checkpoint import Checkpoint
from trainlib.xgboost._checkpoint import MODEL_FILE, XGBoostCheckpoint
from trainlib.xgboost._rounds import newest

__all__ = ["RayTrainReportCallback"]


class RayTrainReportCallback(xgboost.callback.TrainingCallback):
    """Reports every round of ``xgboost.train`` in a training function, and saves the model as an :class:`XGBoostCheckpoint`.

    A round is reported when the next one begins, so that the last one is reported once, and with its model.

    Args:
        metrics: Which metrics are reported, e.g. ``"valid-error"`` or a list of such names; a dict gives them other names,
            ``{"error": "valid-error"}``. Default: all.
        filename: What the model's file is called. Its ending says what format it has. Models with another name are not served.
        frequency: After how many rounds the model is saved. 0: at the end only.
        checkpoint_at_end: Whether the model is saved after the last round, also if the training is stopped.
        results_postprocessing_fn: Changes what is reported, a dict.

    Example:
        >>> from trainlib import ScalingConfig, session
        >>> from trainlib.xgboost import RayTrainReportCallback, XGBoostTrainer
        >>> def train_func(config):
        ...     rows = session.get_dataset_shard("train").materialize().to_pandas()
        ...     matrix = xgboost.DMatrix(rows.drop(columns="target"), rows["target"])
        ...     checkpoint = session.get_checkpoint()
        ...     model = RayTrainReportCallback.get_model(checkpoint) if checkpoint else None
        ...     done = model.num_boosted_rounds() if model else 0
        ...     if done < config["rounds"]:
        ...         xgboost.train(
        ...             {"objective": "binary:logistic"},
        ...             matrix,
        ...             num_boost_round=config["rounds"] - done,
        ...             evals=[(matrix, "train")],
        ...             xgb_model=model,
        ...             callbacks=[RayTrainReportCallback(metrics={"loss": "train-logloss"}, frequency=5)],
        ...         )
        >>> trainer = XGBoostTrainer(
        ...     train_func, train_loop_config={"rounds": 100}, scaling_config=ScalingConfig(num_workers=2)
        ... )
        >>> isinstance(RayTrainReportCallback(), xgboost.callback.TrainingCallback)
        True
    """

    CHECKPOINT_NAME: ClassVar[str] = MODEL_FILE

    def __init__(
        self,
        metrics: str | Sequence[str] | Mapping[str, str] | None = None,
        filename: str = MODEL_FILE,
        frequency: int = 0,
        checkpoint_at_end: bool = True,
        results_postprocessing_fn: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__()
        self._filename = filename
        self._reports = RoundReports(metrics, frequency, checkpoint_at_end, results_postprocessing_fn)
        self._ended: tuple[int, dict[str, Any]] | None = None
        """The round that is not reported yet, and its metrics."""

    @classmethod
    def get_model(cls, checkpoint: Checkpoint, filename: str = MODEL_FILE) -> xgboost.Booster:
        """The model of a checkpoint that this callback has saved."""
        with checkpoint.as_directory() as folder:
            return xgboost.Booster(model_file=str(Path(folder, filename)))

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """XGBoost begins a round."""
        self._report(model, is_last=False)
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """XGBoost ends a round."""
        self._ended = (epoch + 1, newest(evals_log))
        return False

    def after_training(self, model: Any) -> Any:
        """XGBoost has trained all rounds, or was stopped early."""
        self._report(model, is_last=True)
        return model

    def _report(self, model: Any, *, is_last: bool) -> None:
        if self._ended is None:
            return
        (done, metrics), self._ended = self._ended, None
        self._reports.report(metrics, done, lambda: self._saved(model), is_last=is_last)

    def _saved(self, model: Any) -> XGBoostCheckpoint:
        made = XGBoostCheckpoint._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-xgboost-"))
        model.save_model(Path(made.path, self._filename))
        return made
