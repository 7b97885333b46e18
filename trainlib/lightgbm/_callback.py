"""Reports the rounds of a ``lightgbm.train`` that the user calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainlib._boosting.reporting import RoundReports
from trainlib.lightgbm._checkpoint import MODEL_FILE, LightGBMCheckpoint

if TYPE_CHECKING:
    import lightgbm

    from trainlib.checkpoint import Checkpoint

__all__ = ["RayTrainReportCallback"]


class RayTrainReportCallback:
    """Reports every round of ``lightgbm.train`` in a training function, and saves the model as a :class:`LightGBMCheckpoint`.

    LightGBM measures on each worker's own rows, and rank 0's metrics are recorded: evaluate a dataset that all workers have whole,
    or use a LightGBMTrainer with ``params``. LightGBM does not say when ``lightgbm.early_stopping`` ends a training: set
    ``frequency``, to have a model then.

    Args:
        metrics: Which metrics are reported, e.g. ``"valid-auc"`` or a list of such names; a dict gives them other names,
            ``{"auc": "valid-auc"}``. Default: all.
        filename: What the model's file is called. Models with another name are not served.
        frequency: After how many rounds the model is saved. 0: at the end only.
        checkpoint_at_end: Whether the model is saved after the last round, also if trainlib stops the training.
        results_postprocessing_fn: Changes what is reported, a dict.

    Example:
        >>> from trainlib import ScalingConfig, session
        >>> from trainlib.lightgbm import LightGBMTrainer, RayTrainReportCallback, get_network_params
        >>> def train_func(config):
        ...     import lightgbm
        ...
        ...     rows = session.get_dataset_shard("train").materialize().to_pandas()
        ...     params = {"objective": "binary", **get_network_params()}
        ...     dataset = lightgbm.Dataset(rows.drop(columns="target"), rows["target"], params=params)
        ...     checkpoint = session.get_checkpoint()
        ...     lightgbm.train(
        ...         params,
        ...         dataset,
        ...         valid_sets=[dataset],
        ...         valid_names=["train"],
        ...         init_model=RayTrainReportCallback.get_model(checkpoint) if checkpoint else None,
        ...         callbacks=[RayTrainReportCallback(metrics={"loss": "train-binary_logloss"}, frequency=5)],
        ...     )
        >>> trainer = LightGBMTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
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
        self._filename = filename
        self._reports = RoundReports(metrics, frequency, checkpoint_at_end, results_postprocessing_fn)

    @classmethod
    def get_model(cls, checkpoint: Checkpoint, filename: str = MODEL_FILE) -> lightgbm.Booster:
        """The model of a checkpoint that this callback has saved."""
        import lightgbm

        with checkpoint.as_directory() as folder:
            return lightgbm.Booster(model_file=str(Path(folder, filename)))

    def __call__(self, env: Any) -> None:
        """LightGBM ends a round."""
        measured = {f"{dataset}-{metric}": value for dataset, metric, value, *_ in env.evaluation_result_list or ()}
        done, is_last = env.iteration + 1, env.iteration + 1 == env.end_iteration
        self._reports.report(measured, done, lambda: self._saved(env.model), is_last=is_last)

    def _saved(self, model: Any) -> LightGBMCheckpoint:
        made = LightGBMCheckpoint._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-lightgbm-"))
        model.save_model(str(Path(made.path, self._filename)))
        return made
