"""Reports the rounds of a ``lightgbm.train`` that the user calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trainlib._boosting.reporting import RoundReports
from trainlib.lightgbm._checkpoint import MODEL_FILE, LightGBMCheckpoint, keep_rounds, kept_rounds

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
        rounds_before: How many rounds the model had that the training goes on from, as :meth:`get_rounds` says. Default: as many as
            LightGBM knows of.

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
        ...     done = RayTrainReportCallback.get_rounds(checkpoint) if checkpoint else 0
        ...     report = RayTrainReportCallback(
        ...         metrics={"loss": "train-binary_logloss"}, frequency=5, rounds_before=done
        ...     )
        ...     if done < config["rounds"]:
        ...         lightgbm.train(
        ...             params,
        ...             dataset,
        ...             num_boost_round=config["rounds"] - done,
        ...             valid_sets=[dataset],
        ...             valid_names=["train"],
        ...             init_model=RayTrainReportCallback.get_model(checkpoint) if checkpoint else None,
        ...             callbacks=[report],
        ...         )
        >>> trainer = LightGBMTrainer(
        ...     train_func, train_loop_config={"rounds": 100}, scaling_config=ScalingConfig(num_workers=2)
        ... )
    """

    CHECKPOINT_NAME: ClassVar[str] = MODEL_FILE

    def __init__(
        self,
        metrics: str | Sequence[str] | Mapping[str, str] | None = None,
        filename: str = MODEL_FILE,
        frequency: int = 0,
        checkpoint_at_end: bool = True,
        results_postprocessing_fn: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        *,
        rounds_before: int | None = None,
    ) -> None:
        self._filename = filename
        self._rounds_before = rounds_before
        self._reports = RoundReports(metrics, frequency, checkpoint_at_end, results_postprocessing_fn)

    @classmethod
    def get_model(cls, checkpoint: Checkpoint, filename: str = MODEL_FILE) -> lightgbm.Booster:
        """The model of a checkpoint that this callback has saved."""
        import lightgbm

        with checkpoint.as_directory() as folder:
            return lightgbm.Booster(model_file=str(Path(folder, filename)))

    @classmethod
    def get_rounds(cls, checkpoint: Checkpoint, filename: str = MODEL_FILE) -> int:
        """How many rounds the model of a checkpoint was trained for. LightGBM keeps no tree of a round in which nothing could be split."""
        kept = kept_rounds(checkpoint)
        return kept if kept is not None else int(cls.get_model(checkpoint, filename).current_iteration())

    def __call__(self, env: Any) -> None:
        """LightGBM ends a round."""
        measured = {f"{dataset}-{metric}": value for dataset, metric, value, *_ in env.evaluation_result_list or ()}
        before = env.begin_iteration if self._rounds_before is None else self._rounds_before
        done, is_last = before + env.iteration + 1 - env.begin_iteration, env.iteration + 1 == env.end_iteration
        self._reports.report(measured, done, lambda: self._saved(env.model, done), is_last=is_last)

    def _saved(self, model: Any, rounds: int) -> LightGBMCheckpoint:
        made = LightGBMCheckpoint._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-lightgbm-"))
        model.save_model(str(Path(made.path, self._filename)))
        keep_rounds(made, rounds)
        return made
