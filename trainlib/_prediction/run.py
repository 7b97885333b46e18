"""Predicting as planned: each worker loads the model once, and the rows stream through the workers to Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from trainlib import _storage as storage
from trainlib._data.pipeline_errors import readable_errors, reason
from trainlib._data.sources import inspect_source
from trainlib._prediction.plan import PredictionPlan
from trainlib._secrets import masked_uri
from trainlib.config import ScalingConfig
from trainlib.errors import CapacityError, DataError

if TYPE_CHECKING:
    import ray.data

__all__ = ["MANIFEST", "Predictions", "appearing", "run_prediction"]

MANIFEST = "_predictions.json"
"""The file that says what the others are. In a remote store, a folder without it is not complete."""

_READY_S = 600.0
"""How long the workers have to start and to load the model."""


@dataclass(frozen=True)
class Predictions:
    """Predictions that are complete."""

    folder: str
    """The folder of the Parquet files."""
    rows: int
    columns: dict[str, str]
    """Names and types of the columns: those of the dataset that were kept, then the predictions."""
    dataset: str
    model: str
    """What predicted, e.g. ``digits version 3``."""
    model_name: str | None
    """The registered model, if it was named so."""
    model_version: str | None
    checkpoint: str | None
    """The id of the checkpoint. None if it is not one."""
    run_id: str | None
    """The MLflow run that trained the model, if it is known."""


def run_prediction(plan: PredictionPlan, say: Callable[[str], None]) -> Predictions:
    """Predict, and write the folder. It is there when it is complete, or not at all.

    Raises:
        DataError: rows could not be read, or the predictor raised an error.
        CapacityError: this machine can never hold so many workers.
    """

    from trainlib._data.quiet import quiet
    from trainlib._data.writing import write_parquet
    from trainlib._execution import cluster

    cluster.connect()
    quiet()
    _require_room(plan)
    source = masked_uri(plan.source.uri)
    say(f"predicting with {plan.model.title} on {plan.num_workers} worker(s): {source}")
    what = f"the predictions of {plan.model.title} for {source}"
    with appearing(plan.folder) as folder, _of_workers(plan), readable_errors(what):
        write_parquet(_predicted(plan), folder)
        written = inspect_source(folder)
        if plan.source.rows is not None and written.rows != plan.source.rows:
            raise DataError(f"{source} has {plan.source.rows} rows, but {written.rows} predictions were written")
        result = Predictions(
            folder=plan.folder,
            rows=written.rows or 0,
            columns=written.columns,
            dataset=source,
            model=plan.model.title,
            model_name=plan.model.name,
            model_version=plan.model.version,
            checkpoint=plan.model.model_id if plan.model.is_checkpoint else None,
            run_id=plan.model.run_id,
        )
        storage.write_bytes(storage.join(folder, MANIFEST), json.dumps(asdict(result), indent=2).encode())
    say(f"{result.rows} rows: {result.folder}")
    return result


def _predicted(plan: PredictionPlan) -> ray.data.Dataset:
    from ray.data import ActorPoolStrategy

    from trainlib._prediction.predictor import BatchPredictor

    rows = plan.source.read()
    # The predictions are in the order of the rows.
    rows.context.execution_options.preserve_order = True
    # Otherwise the first worker that is ready may take all rows, and workers that there is no room for are waited for silently.
    rows.context.wait_for_min_actors_s = int(_READY_S)
    return rows.map_batches(
        BatchPredictor,
        fn_constructor_args=(plan.recipe,),
        batch_format="pandas",
        batch_size=plan.batch_size,
        compute=ActorPoolStrategy(size=plan.num_workers),
        num_cpus=0 if plan.use_gpu else 1,
        num_gpus=1 if plan.use_gpu else None,
    )


@contextmanager
def _of_workers(plan: PredictionPlan) -> Iterator[None]:
    """Turn what Ray says of workers that do not start into errors that say why."""
    from ray.exceptions import ActorDiedError, GetTimeoutError

    try:
        yield
    except GetTimeoutError as error:
        raise CapacityError(
            f"num_workers: {plan.num_workers} workers were not ready in {_READY_S:g} s. Wait for other work to end, ask for fewer, or "
            "point RAY_ADDRESS at a larger cluster"
        ) from error
    except ActorDiedError as error:
        raise DataError(f"a worker ended while it loaded or used {plan.model.title}: {reason(str(error))}") from None


def _require_room(plan: PredictionPlan) -> None:
    """Ray Data would wait for ever for workers that this machine has no room for."""
    import ray

    from trainlib._execution import cluster
    from trainlib._execution.gang import never_fits

    scaling = ScalingConfig(num_workers=plan.num_workers, use_gpu=plan.use_gpu)
    if not cluster.is_local():
        return
    if problem := never_fits(scaling):
        raise CapacityError(f"num_workers: {problem}")
    cpus = ray.cluster_resources().get("CPU", 0.0)
    if not plan.use_gpu and plan.num_workers + 1 > cpus:
        raise CapacityError(
            f"num_workers: {plan.num_workers} workers take all of this machine's {cpus:g} CPUs, and none is left for reading the "
            f"rows: ask for at most {max(1, int(cpus) - 1)}"
        )


@contextmanager
def appearing(folder: str) -> Iterator[str]:
    """A folder to write into. On local disk it gets its name when it is complete; elsewhere, the manifest is written last."""
    path = storage.local_path(folder)
    aside = path.with_name(f".{path.name}.part") if path else None
    working = str(aside) if aside else folder
    try:
        yield working
        if path and aside:
            storage.upload(aside, folder)
    except BaseException:
        storage.delete(working)
        raise
