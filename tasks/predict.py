"""The prediction task: a model over a dataset, to Parquet."""

from __future__ import annotations

from functools import partial

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from trainlib._prediction.plan import PredictionPlan
from trainlib._prediction.run import Predictions, run_prediction
from trainlib.tasks._background import show

__all__ = ["predict"]


@task(name="predict", task_run_name="predict · {plan.model.title}", cache_policy=NO_CACHE)
def predict(plan: PredictionPlan) -> Predictions:
    """Predict for all rows of a dataset, and write them with their predictions. All or nothing is written.

    Args:
        plan: What to predict, as plan_prediction has checked it.
    """
    predictions = run_prediction(plan, get_run_logger().info)
    about = f"Predictions of {predictions.model}"
    show(partial(create_markdown_artifact, _summary(predictions), key="predictions", description=about))
    return predictions


def _summary(predictions: Predictions) -> str:
    rows = [
        ("model", predictions.model),
        ("checkpoint", f"`{predictions.checkpoint}`" if predictions.checkpoint else "none"),
        ("dataset", f"`{predictions.dataset}`"),
        ("rows", predictions.rows),
        ("columns", ", ".join(f"`{name}`" for name in predictions.columns)),
        ("stored in", f"`{predictions.folder}`"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
