"""A flow whose parameters are the fields of a form. What Prefect stores of them has no secrets in it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from prefect import Flow
from prefect.context import FlowRunContext
from prefect.exceptions import ParameterTypeError

from trainlib._form_secrets import ADVICE, masked_but_references, plain_secrets
from trainlib._masked_text import masked_text
from trainlib._runtime_env import code_in

__all__ = ["BRING_CODE", "FormFlow", "form_flow"]

BRING_CODE = "TRAINLIB_FORMS_BRING_CODE"
"""The environment variable with which whoever runs the deployments lets forms name packages and folders that workers run code of."""

P = ParamSpec("P")
R = TypeVar("R")


class FormFlow(Flow[P, R]):
    """Masks secrets where somebody calls it from Python. In a run of a deployment, refuses them, and code that a form brings along.

    In Python, the function gets what was passed, and Prefect stores something else. A run of a deployment gets only what is stored, and
    whoever fills in its form need not be whoever runs it.
    """

    def serialize_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        stored: dict[str, Any] = masked_but_references(super().serialize_parameters(parameters))
        return stored

    def validate_parameters(self, parameters: dict[str, Any]) -> dict[str, Any]:
        if _is_run_of_deployment():
            if found := list(plain_secrets(parameters)):
                raise ParameterTypeError(f"{', '.join(found)}: this is a secret. {ADVICE} Then delete this run.")
            if (code := _code_in(parameters)) and not os.environ.get(BRING_CODE):
                raise ParameterTypeError(
                    f"{', '.join(code)}: a form does not bring code along, unless whoever runs the deployment allows it. Install it "
                    f"where the workers are, or set {BRING_CODE}=1 where the flow runs."
                )
        return super().validate_parameters(parameters)


def form_flow(*, name: str, flow_run_name: str | Callable[[], str]) -> Callable[[Callable[P, R]], FormFlow[P, R]]:
    """Make a flow of a function, as Prefect's ``@flow`` does. Results are not kept: MLflow has what they are made of."""
    return lambda function: FormFlow(function, name=name, flow_run_name=flow_run_name, persist_result=False)


def _code_in(parameters: dict[str, Any]) -> list[str]:
    env = parameters.get("runtime_env")
    return [f"runtime_env.{field}" for field in code_in(env)] if isinstance(env, Mapping) else []


def _is_run_of_deployment() -> bool:
    """Whether Prefect has started this process for the run that is about to begin."""
    return bool(os.environ.get("PREFECT__FLOW_RUN_ID")) and FlowRunContext.get() is None


def _mask(record: logging.LogRecord) -> bool:
    record.msg, record.args = masked_text(record.getMessage()), None
    return True


# There, Prefect prints all parameters if one of them is not valid.
logging.getLogger("prefect.flows").addFilter(_mask)
