"""The whole pipeline: preprocess, sweep, train, select, evaluate, register, and promote only a better model."""

from __future__ import annotations

from functools import partial
from typing import Literal

from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from trainlib._forms import plain
from trainlib._registry.params import flat
from trainlib._registry.urls import model_url
from trainlib._secrets import masked
from trainlib.callbacks._mlflow import store_of
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.flows._pipeline_steps import PipelineResult, run_steps
from trainlib.flows.forms import (
    CheckpointSection,
    DataSection,
    DataSource,
    EnvironmentSection,
    FailureSection,
    MoreTrainers,
    NumWorkers,
    RunSection,
    ScalingSection,
    SearchSpace,
    StepSection,
    TrainerChoice,
    combined,
)
from trainlib.flows.pipeline_spec import Alias, ApprovalSection, HeldOutSplitSection, ModelName, PipelineSpec
from trainlib.flows.preprocess import preprocess_spec_of
from trainlib.flows.spec import TrainSpec
from trainlib.flows.tune_spec import TuneSection
from trainlib.tasks._background import show
from trainlib.tasks._pipeline_summary import PipelineFacts, summary_of
from trainlib.tune._config import SchedulerName, TuneConfig
from trainlib.tune._search import SearchName

__all__ = ["PipelineResult", "pipeline"]


@notifies
@form_flow(name="pipeline", flow_run_name="pipeline · {model_name}")
def pipeline(
    source: DataSource,
    model_name: ModelName,
    trainer: TrainerChoice,
    target: str = "",
    metric: str = "accuracy",
    mode: Literal["max", "min"] = "max",
    evaluate: str = "",
    num_workers: NumWorkers = 1,
    param_space: SearchSpace = {},  # noqa: B006  # it is only read, and a form shows it as empty
    num_samples: int = 1,
    compare_with: MoreTrainers = [],  # noqa: B006
    alias: Alias = "best",
    approval: ApprovalSection = ApprovalSection(),
    steps: list[StepSection] = [],  # noqa: B006
    split: HeldOutSplitSection = HeldOutSplitSection(),
    data_storage_path: str = "",
    search_alg: SearchName = "random",
    scheduler: SchedulerName = "fifo",
    tune_config: TuneSection = TuneSection(),
    scaling_config: ScalingSection = ScalingSection(),
    run_config: RunSection = RunSection(),
    checkpoint_config: CheckpointSection = CheckpointSection(),
    failure_config: FailureSection = FailureSection(),
    dataset_config: DataSection = DataSection(),
    runtime_env: EnvironmentSection = EnvironmentSection(),
) -> PipelineResult:
    """Prepare data, train, evaluate on rows that were held out, register, and promote the model only if it is better.

    The steps: preprocess the data into rows for training, for validation, and held-out ones; try settings and trainers in a sweep,
    if there are any to try; train with the best; select the best checkpoint; evaluate it on the held-out rows; register it as a version of
    the model; and move the alias to it, if it is better than the version that has the alias. Both are measured by the same
    function on the same rows, each with its own preprocessor. If that version cannot be evaluated, what was recorded of it
    counts, and the summary says so. The alias moves last, in one step: a run that fails or is killed leaves it as it was, and one
    that is retried goes on, and registers nothing twice.

    Args:
        source: The data: CSV, Parquet or JSON Lines files, as the path or URI of one file, a glob, or a folder.
        model_name: The registered model that gets a new version. It is created if it does not exist.
        trainer: Which trainer, and what it needs. Its function gets the datasets 'train' and 'validation', and the target
            column's name in its config.
        target: The column to predict: it has to be there in every row, and to vary. Empty: none.
        metric: What ranks trials, checkpoints and versions: a metric that is reported with each checkpoint, and that the
            evaluation returns.
        mode: Whether a high or a low value of the metric is better.
        evaluate: A function(checkpoint, dataset) that returns a dict of metrics, as module:function, marked with
            @trainlib.trainable. It runs on one Ray worker. Empty: versions are compared by what their trainings have reported.
        num_workers: Workers that train together, each in its own process.
        param_space: Settings to try before, by setting of the trainer, e.g. {"train_loop_config": {"lr": {"loguniform": [0.0001,
            0.1]}}}. Empty: none.
        num_samples: How many trials the sweep runs. With a grid, or several trainers, how often it runs each of them.
        compare_with: More trainers, of any kind. The sweep tries each of them on the same data, and the best one is trained.
        alias: The alias that the best version has.
        approval: Whether a person has to agree before the alias is moved.
        steps: Preprocessors, one after the other: fitted on the rows for training, and kept with the model.
        split: Which rows are for training, which for validation, and which are held out.
        data_storage_path: Folder or URI to store the preprocessed data in. Empty: trainlib's home folder.
        search_alg: How the sweep chooses values.
        scheduler: Which trials are stopped early. fifo: none.
        tune_config: How many trials run at once, and for how long.
        scaling_config: What each worker gets, and where workers are placed.
        run_config: Where trainings are kept, and when each of them ends.
        checkpoint_config: Which checkpoints of each training are kept.
        failure_config: What is retried.
        dataset_config: Which datasets are split across the workers.
        runtime_env: What workers need besides what their machines have: packages, variables and code.
    """
    train = TrainSpec.of_parameters(
        trainer,
        num_workers,
        "",
        {},
        scaling_config,
        run_config,
        checkpoint_config,
        failure_config,
        dataset_config,
        runtime_env,
    )
    compared = {"metric": metric, "mode": mode}
    sweep = {**compared, "num_samples": num_samples, "search_alg": search_alg, "scheduler": scheduler}
    spec = PipelineSpec(
        data=preprocess_spec_of(source, target, steps, split, data_storage_path),
        train=train,
        compare_with=compare_with,
        param_space=param_space,
        tune_config=combined(TuneConfig, tune_config, "tune_config", **sweep),
        metric=metric,
        mode=mode,
        evaluate=evaluate or None,
        model_name=model_name,
        alias=alias,
        approval=plain(approval),
    )
    ended = outliving_prefect(lambda: _pipeline(spec))
    return ended if isinstance(ended, State) else Completed(message=ended.summary, data=ended)  # type: ignore[return-value]


def _pipeline(spec: PipelineSpec) -> PipelineResult:
    result = run_steps(spec)
    text = summary_of(_facts_of(result, spec))
    about = f"Version {result.version.version} of {result.version.name}"
    show(partial(create_markdown_artifact, text, key="pipeline-summary", description=about))
    return result


def _facts_of(result: PipelineResult, spec: PipelineSpec) -> PipelineFacts:
    version, store = result.version, store_of(spec.train.run_config)
    links = {f"Version {version.version} in MLflow": model_url(store.uri, version.name, version.version)}
    if result.decision.champion is not None and result.decision.champion != version.version:
        before = result.decision.champion
        links[f"Version {before} in MLflow"] = model_url(store.uri, version.name, before)
    if result.training.run_url is not None:
        links["The training in MLflow"] = result.training.run_url
    if result.sweep is not None and result.sweep.run_url is not None:
        links["The sweep in MLflow"] = result.sweep.run_url
    return PipelineFacts(
        data=result.data,
        best=flat(masked(result.best)),
        selection=result.selection,
        held_out=result.held_out,
        version=version,
        decision=result.decision,
        links=links,
    )
