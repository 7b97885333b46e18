"""The calls that begin a run, made without MLflow: to import it takes a third of the time until a training function starts."""

from __future__ import annotations

import base64
import json
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from trainlib._importing import without_collecting
from trainlib._platform import record
from trainlib._registry.store import TrackingStore
from trainlib._registry.tags import MLFLOW_USER

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = ["EarlyClient", "early_client", "log_notes"]

_TIMEOUT_S = 10.0
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def early_client(store: TrackingStore) -> MlflowClient | None:
    """A client that imports MLflow when it has to. None if MLflow is imported already, or the store is not a platform's.

    A platform's server has the version of MLflow that is installed here, and it is on this machine. So these calls need none of
    what MLflow's own client does for others.
    """
    platform = record.running()
    if "mlflow" in sys.modules or platform is None or store.uri != platform.mlflow:
        return None
    return cast("MlflowClient", EarlyClient(store))


@dataclass(frozen=True)
class _Experiment:
    experiment_id: str
    name: str
    artifact_location: str


@dataclass(frozen=True)
class _RunInfo:
    run_id: str
    run_name: str
    artifact_uri: str
    start_time: int
    status: str


@dataclass(frozen=True)
class _RunData:
    tags: dict[str, str]


@dataclass(frozen=True)
class _Run:
    info: _RunInfo
    data: _RunData


class EarlyClient:
    """Begins a run by MLflow's REST API. Everything else, and whatever the server refuses, is for MLflow's own client."""

    def __init__(self, store: TrackingStore) -> None:
        self.tracking_uri = store.uri
        self._login = ":".join(store.login) if store.login else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # nothing of MLflow's, and asked for before there is a client
            raise AttributeError(name)
        return getattr(self._client, name)

    @cached_property
    def _client(self) -> MlflowClient:
        with without_collecting():
            from mlflow import MlflowClient

        return MlflowClient(self.tracking_uri)

    def load(self) -> None:
        """Import MLflow now, in the background: it is needed soon."""
        threading.Thread(target=lambda: self._client, name="mlflow-import", daemon=True).start()

    def get_experiment_by_name(self, name: str) -> Any:
        """An experiment; None if there is none of that name."""
        asked = urllib.parse.urlencode({"experiment_name": name})
        try:
            found = self._ask(f"experiments/get-by-name?{asked}")["experiment"]
        except OSError:
            return self._client.get_experiment_by_name(name)
        return _Experiment(found["experiment_id"], found["name"], found["artifact_location"])

    def search_runs(self, experiment_ids: list[str], filter_string: str = "", **more: Any) -> Any:
        """Runs that there are. Before a new one begins, there mostly are none."""
        asked = {"experiment_ids": experiment_ids, "filter": filter_string, "max_results": 1}
        try:
            is_empty = not self._ask("runs/search", asked).get("runs")
        except OSError:
            is_empty = False
        return [] if is_empty else self._client.search_runs(experiment_ids, filter_string, **more)

    def create_run(self, experiment_id: str, start_time: int, tags: Mapping[str, str], run_name: str) -> Any:
        """A new run."""
        asked = {
            "experiment_id": experiment_id,
            "start_time": start_time,
            "run_name": run_name,
            "user_id": tags.get(MLFLOW_USER, "unknown"),
            "tags": _pairs(tags),
        }
        try:
            info = self._ask("runs/create", asked)["run"]["info"]
        except OSError:
            return self._client.create_run(experiment_id, start_time, dict(tags), run_name)
        return _Run(
            _RunInfo(info["run_id"], info["run_name"], info["artifact_uri"], int(info["start_time"]), info["status"]),
            _RunData(dict(tags)),
        )

    def log_notes(self, run_id: str, params: Mapping[str, str], tags: Mapping[str, str]) -> bool:
        """Write params and tags. Gives False if the server did not take them."""
        try:
            self._ask("runs/log-batch", {"run_id": run_id, "params": _pairs(params), "tags": _pairs(tags)})
        except OSError:
            return False
        return True

    def _ask(self, call: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the server answers.

        Raises:
            OSError: it refuses, or does not answer.
        """
        headers = {"Content-Type": "application/json"}
        if self._login is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(self._login.encode()).decode()}"
        request = urllib.request.Request(
            f"{self.tracking_uri}/api/2.0/mlflow/{call}",
            data=json.dumps(body).encode() if body is not None else None,
            headers=headers,
        )
        with _direct.open(request, timeout=_TIMEOUT_S) as answer:
            return dict(json.load(answer))


def log_notes(
    client: MlflowClient, run_id: str, *, params: Mapping[str, str] | None = None, tags: Mapping[str, str] | None = None
) -> None:
    """Write params and tags of a run, in one call."""
    params, tags = params or {}, tags or {}
    if isinstance(client, EarlyClient) and client.log_notes(run_id, params, tags):
        return
    from mlflow.entities import Param, RunTag

    client.log_batch(
        run_id,
        params=[Param(key, value) for key, value in params.items()],
        tags=[RunTag(key, value) for key, value in tags.items()],
    )


def _pairs(notes: Mapping[str, str]) -> Sequence[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in notes.items()]
