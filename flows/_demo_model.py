"""The demo's model, for forms that nobody has filled in: it is trained first where there is none."""

from __future__ import annotations

from prefect.logging import get_run_logger

from trainlib._prediction.model_names import NamedModel, find_model
from trainlib.errors import ModelNotFoundError
from trainlib.flows.demo import digits
from trainlib.flows.pipeline import pipeline

__all__ = ["DEMO_MODEL", "demo_model"]

DEMO_MODEL = "models:/digits@best"


def demo_model() -> NamedModel:
    """The best version of the model that the demo registers."""
    try:
        return find_model(DEMO_MODEL)
    except ModelNotFoundError:
        get_run_logger().info("There is no %s yet: training it first.", DEMO_MODEL)
    # As a flow run of its own: what a flow run has begun, it continues, and this is another training.
    pipeline(**digits().parameters())
    return find_model(DEMO_MODEL)
