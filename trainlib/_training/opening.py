"""How a training comes to be: its run is found or created and described, its data are found, its callbacks set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import cloudpickle

from trainlib._digest import digest
from trainlib._registry.fingerprint import Fingerprint
from trainlib._registry.opening import open_run
from trainlib._registry.params import flat, stored_values
from trainlib._registry.run import RegisteredRun
from trainlib._registry.tags import FRAMEWORK, LOG_FOLDER
from trainlib._secrets import masked
from trainlib._training.display import Display
from trainlib._training.judges import Judge
from trainlib._training.naming import training_name
from trainlib._training.training import Training
from trainlib.callbacks import Callback, MLflowLoggerCallback
from trainlib.callbacks._mlflow import store_of
from trainlib.config import RunConfig

if TYPE_CHECKING:
    from trainlib._data.ingest import Ingest
    from trainlib._data.sources import Source
    from trainlib.trainer import DataParallelTrainer, InspectedTrainer

__all__ = ["fingerprint_of", "open_training", "open_trial", "with_mlflow_callback"]


def open_training(
    inspected: InspectedTrainer,
    *,
    flow_run_id: str | None = None,
    tags: Mapping[str, str] | None = None,
    display: Display | None = None,
) -> Training:
    """The training of a trainer, with its run found or created, and described."""
    trainer, display = inspected.trainer, display or Display()
    config, extra = with_mlflow_callback(trainer.run_config)
    if trainer.resume_from_checkpoint is not None:
        trainer.resume_from_checkpoint.require()
    run = open_run(
        config,
        store=store_of(config),
        default_name=training_name(trainer, datetime.now()),
        kind="training",
        run=trainer.restored_run,
        flow_run_id=flow_run_id,
        tags={**extra, **(tags or {}), **({LOG_FOLDER: trainer.log_folder} if trainer.log_folder else {})},
        fingerprint=fingerprint_of(trainer, inspected.sources) if trainer.restored_run is None else None,
        say=display.say,
    )
    try:
        run.describe(params=_params_of(trainer), tags={FRAMEWORK: trainer.backend_config.framework})
        if not run.continued:
            run.save_trainer(inspected.pickled)
        callbacks = list(trainer.run_config.callbacks or ())
        kept = _kept_preprocessor(trainer, run)
        training = Training(
            trainer,
            run,
            display=display,
            ingest=_ingest_of(trainer, inspected.sources, kept),
            kept_preprocessor=kept,
            callbacks=callbacks,
        )
        training.set_up_callbacks()
    except BaseException:
        run.close("FAILED")
        raise
    return training


def open_trial(
    trainer: DataParallelTrainer,
    run: RegisteredRun,
    *,
    params: Mapping[str, Any],
    display: Display,
    judges: Sequence[Judge],
    callbacks: Sequence[Callback],
) -> Training:
    """The training of a trial, whose run a sweep has opened; ``params`` are written with its first metrics."""
    if params or not run.continued:
        run.metrics.note(params={**flat(_params_of(trainer)), **params})
    kept = _kept_preprocessor(trainer, run)
    return Training(
        trainer,
        run,
        display=display,
        ingest=_ingest_of(trainer, trainer.inspect_data(), kept),
        kept_preprocessor=kept,
        judges=judges,
        callbacks=callbacks,
    )


def fingerprint_of(trainer: DataParallelTrainer, sources: Mapping[str, Source]) -> Fingerprint:
    """What decides whether a training may continue an interrupted one: its code, its config, and its data."""
    from trainlib._data.datasets import digest_of
    from trainlib._data.preprocessors import fingerprint

    data = {name: digest_of(name, given, sources.get(name)) for name, given in trainer.datasets.items()}
    preprocessor = fingerprint(trainer.preprocessor) if trainer.preprocessor is not None else None
    return Fingerprint(
        function=digest(trainer.train_loop_per_worker),
        config=digest(masked(trainer.train_loop_config or {})),
        data=digest((data, preprocessor)),
        params=stored_values(flat(trainer.train_loop_config or {})),
    )


def _ingest_of(trainer: DataParallelTrainer, sources: dict[str, Source], kept_preprocessor: Any) -> Ingest | None:
    if not trainer.datasets:
        return None
    from trainlib._data.ingest import Ingest

    return Ingest(
        trainer.datasets,
        sources=sources,
        config=trainer.dataset_config,
        preprocessor=kept_preprocessor or trainer.preprocessor,
    )


def _kept_preprocessor(trainer: DataParallelTrainer, run: RegisteredRun) -> Any:
    """The preprocessor that an earlier process fitted for this run, unless the trainer was given a fitted one."""
    if trainer.preprocessor is None or not run.continued:
        return None
    from trainlib._data.preprocessors import is_fitted

    kept = None if is_fitted(trainer.preprocessor) else run.load_preprocessor()
    return cloudpickle.loads(kept) if kept is not None else None


def _params_of(trainer: DataParallelTrainer) -> dict[str, Any]:
    """What the registry keeps as params of a training."""
    return {
        **(trainer.train_loop_config or {}),
        "trainer": type(trainer).__name__,
        "num_workers": trainer.scaling_config.num_workers,
        "use_gpu": trainer.scaling_config.use_gpu,
    }


def with_mlflow_callback(config: RunConfig) -> tuple[RunConfig, dict[str, str]]:
    """What an MLflowLoggerCallback says about the run: it is the run that there is anyway."""
    tags: dict[str, str] = {}
    for callback in config.callbacks or ():
        if isinstance(callback, MLflowLoggerCallback):
            tags.update(callback.tags)
            if callback.experiment_name and not config.experiment_name:
                config = config.model_copy(update={"experiment_name": callback.experiment_name})
    return config, tags
