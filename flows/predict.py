"""The flow that predicts: a model of the registry over a dataset."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from trainlib._bounds import LARGEST_COUNT
from trainlib._data.sources import inspect_source
from trainlib._form_secrets import WithoutPlainSecrets
from trainlib._prediction.model_names import NamedModel, find_model
from trainlib._prediction.plan import plan_prediction, require_function
from trainlib._prediction.run import Predictions
from trainlib.flows._demo_model import DEMO_MODEL, demo_model
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._fields import about_field
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.flows.demo_data import located
from trainlib.flows.forms import NumWorkers
from trainlib.tasks.predict import predict as predict_task

__all__ = ["predict"]


@notifies
@form_flow(name="predict", flow_run_name="predict · {model}")
def predict(
    model: Annotated[str, Field(min_length=1)],
    dataset: Annotated[str, Field(min_length=1), WithoutPlainSecrets()],
    predictor: str = "",
    keep_columns: list[str] = [],  # noqa: B006  # it is only read, and a form shows it as empty
    num_workers: NumWorkers = 2,
    use_gpu: bool = False,
    batch_size: Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)] = 1024,
    preprocess: bool = True,
    storage_path: str = "",
) -> Predictions:
    """Predict for every row of a dataset, on several Ray workers, and write Parquet. All of it is written, or nothing.

    The preprocessor that was saved with the model is applied to the rows first. If the demo's model is asked for and there is none
    yet, it is trained first.

    Args:
        model: A registered model by its alias or version (models:/digits@best, models:/digits/3), the id of a checkpoint, or a run, by id
            or name, for its best checkpoint.
        dataset: The rows: a path or URI of CSV, Parquet or JSON Lines files, a folder of them, or a glob.
        predictor: What predicts, as module:function. The function is marked with @trainlib.trainable. Each worker calls it once, with the
            checkpoint, and what it returns is called with each batch, a DataFrame. Empty: the model predicts by itself, if the checkpoint knows it or MLflow can load it.
        keep_columns: The columns of the dataset that are written beside the predictions. Empty: all.
        num_workers: How many processes predict side by side. Each loads the model once.
        use_gpu: Whether each worker gets a GPU.
        batch_size: How many rows are predicted at once.
        preprocess: Whether the preprocessor that was saved with the model is applied. Switch it off for rows that are preprocessed already.
        storage_path: Where the folder of the predictions is made: a path or a URI. Empty: predictions in trainlib's home folder.
    """
    resources = {"num_workers": num_workers, "use_gpu": use_gpu, "batch_size": batch_size}

    def work() -> Predictions:
        # Before the demo is trained, if it has to be.
        require_function(predictor or None)
        with about_field("dataset"):
            rows = inspect_source(located(dataset))
        found = _model_named(model)
        plan = plan_prediction(
            found,
            rows,
            predictor=predictor or None,
            keep_columns=keep_columns or None,
            preprocess=preprocess,
            storage_path=storage_path or None,
            **resources,
        )
        return predict_task(plan)

    return outliving_prefect(work)


def _model_named(model: str) -> NamedModel:
    if model == DEMO_MODEL:
        return demo_model()
    with about_field("model"):
        return find_model(model)
