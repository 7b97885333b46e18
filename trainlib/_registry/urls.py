"""The addresses of MLflow's pages. No other module spells one.

All of them open the view for training: MLflow would show an experiment, and the runs in it, in its view for GenAI.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote, urlencode

from trainlib._platform import record
from trainlib._registry.client import is_server
from trainlib._registry.store import home_store
from trainlib._secrets import without_login

__all__ = [
    "LOCAL_UI",
    "artifact_link",
    "compare_link",
    "model_url",
    "page",
    "run_link",
    "run_url",
    "trials_link",
    "trials_url",
]

LOCAL_UI = "http://127.0.0.1:5000"
"""Where ``trainlib up`` serves the local store. A link into a store that nobody serves leads here."""

_TRAINING_VIEW = {"workflowType": "machine_learning"}


def run_url(uri: str, experiment_id: str, run_id: str) -> str:
    """The page of a run.

    Example:
        >>> run_url("http://mlflow:5000/", "1", "abc")
        'http://mlflow:5000/#/experiments/1/runs/abc?workflowType=machine_learning'
    """
    return page(uri, run_link(experiment_id, run_id))


def trials_url(uri: str, experiment_id: str, sweep_run_id: str) -> str:
    """The table of a sweep's trials, as the view that the sweep has shared shows it.

    Example:
        >>> trials_url("http://mlflow:5000/", "1", "abc")
        'http://mlflow:5000/#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=abc'
    """
    return page(uri, trials_link(experiment_id, sweep_run_id))


def model_url(uri: str, name: str, version: str) -> str:
    """The page of a model version.

    Example:
        >>> model_url("http://mlflow:5000/", "my model", "3")
        'http://mlflow:5000/#/models/my%20model/versions/3?workflowType=machine_learning'
    """
    return page(uri, _link(f"models/{quote(name, safe='')}/versions/{version}", **_TRAINING_VIEW))


def page(uri: str, link: str) -> str:
    """The whole address of what a link leads to.

    Example:
        >>> page("http://ada:pw@mlflow:5000/", compare_link("1", ["a", "b"])).partition("?")[0]
        'http://mlflow:5000/#/compare-runs'
    """
    base = without_login(uri).rstrip("/") if is_server(uri) else _local_ui(uri)
    return f"{base}/{link}"


# Within MLflow, a link needs no host. So it also works when another server serves the store later.


def run_link(experiment_id: str, run_id: str) -> str:
    """A link to the page of a run, from another page of MLflow.

    Example:
        >>> run_link("1", "abc")
        '#/experiments/1/runs/abc?workflowType=machine_learning'
    """
    return _link(f"experiments/{experiment_id}/runs/{run_id}", **_TRAINING_VIEW)


def trials_link(experiment_id: str, sweep_run_id: str) -> str:
    """A link to the table of a sweep's trials, from another page of MLflow.

    Example:
        >>> trials_link("1", "abc")
        '#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=abc'
    """
    return _link(f"experiments/{experiment_id}/runs", **_TRAINING_VIEW, viewStateShareKey=sweep_run_id)


def compare_link(experiment_id: str, run_ids: Sequence[str]) -> str:
    """A link to the page that compares some runs of an experiment, from another page of MLflow.

    Example:
        >>> compare_link("1", ["a", "b"])
        '#/compare-runs?runs=%5B%22a%22%2C%22b%22%5D&experiments=%5B%221%22%5D&workflowType=machine_learning'
    """
    return _link("compare-runs", runs=_json(run_ids), experiments=_json([experiment_id]), **_TRAINING_VIEW)


def artifact_link(run_id: str, path: str) -> str:
    """A link to a file among the artifacts of a run, from a page of MLflow. An image can be shown by it.

    Example:
        >>> artifact_link("abc", "plots/loss curve.png")
        'get-artifact?path=plots%2Floss%20curve.png&run_uuid=abc'
    """
    return f"get-artifact?path={quote(path, safe='')}&run_uuid={run_id}"


def _link(path: str, **query: str) -> str:
    return f"#/{path}?{urlencode(query)}"


def _json(values: Sequence[str]) -> str:
    return json.dumps(list(values), separators=(",", ":"))


def _local_ui(uri: str) -> str:
    """Where a database is served, or will be."""
    platform = record.running() if uri == home_store().uri else None
    return platform.mlflow if platform is not None else LOCAL_UI
