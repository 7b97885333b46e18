"""The process that serves the deployments: ``python -m trainlib.deployments.serve``.

It registers them at the Prefect server of ``PREFECT_API_URL``, says so with one line of JSON, and starts a process for each
run of theirs. On SIGTERM it ends with all of them: they are interrupted, and each may say how it ended.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import psutil
from prefect import Flow
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import EntrypointType, load_flow_from_entrypoint  # type: ignore[attr-defined]
from prefect.runner import Runner
from prefect.schedules import Schedule
from prefect.settings import PREFECT_API_URL
from prefect.utilities.callables import ParameterSchema

from trainlib.deployments.automations import SILENCE, ensure_automations
from trainlib.deployments.interrupted import mark_interrupted_runs, mark_silent_runs
from trainlib.deployments.listed import ListedDeployment, listed
from trainlib.deployments.work_pool import ensure_work_pool
from trainlib.tasks._prefect_server import answers

__all__ = ["deployments"]

_START_S = 180.0
_LOOK_S = 0.1
_WATCH_S = 1.0
# Somebody has pressed Run, and watches: Prefect's own 10 s are long then.
_ASK_S = 2.0
# A training that is interrupted has 5 s for its checkpoints. All in all it has to be less than this process has itself.
_RUNS_END_S = 8.0
_RUNNER_ENDS_S = 1.0


def deployments() -> Iterator[RunnerDeployment]:
    """All deployments that prefect.yaml lists. ``prefect deploy`` would give them a work pool as well."""
    for each in listed():
        flow: Flow[..., Any] = load_flow_from_entrypoint(each.entrypoint, use_placeholder_flow=False)
        deployment: RunnerDeployment = flow.to_deployment(  # type: ignore[assignment]  # not in an event loop, so no coroutine
            each.name,
            description=each.description or flow.description,
            tags=each.tags,
            parameters=each.parameters,
            schedules=[Schedule(**schedule) for schedule in each.schedules],
            concurrency_limit=_limit_of(each),
            entrypoint_type=EntrypointType.MODULE_PATH,  # a run imports it as this process does, in whatever folder
        )
        deployment._parameter_openapi_schema = ClosedSchema.of(deployment._parameter_openapi_schema)
        yield deployment


class ClosedSchema(ParameterSchema):
    """The schema of a form that has no other fields: Prefect's server names what else somebody sends, and refuses it.

    Otherwise it would start a run, which would crash.
    """

    additionalProperties: bool = False  # noqa: N815  # as JSON schema spells it

    @classmethod
    def of(cls, schema: ParameterSchema) -> ClosedSchema:
        """The same schema, closed."""
        return cls(**dict(schema), additionalProperties=False)


def _limit_of(deployment: ListedDeployment) -> int | ConcurrencyLimitConfig | None:
    limit = deployment.concurrency_limit
    return ConcurrencyLimitConfig(**limit) if isinstance(limit, dict) else limit


def main() -> int:
    """Register, and serve until SIGTERM."""
    told_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: told_to_end.set())
    if not _wait_for_server(told_to_end):
        return 0
    ensure_automations()
    ensure_work_pool()
    mark_interrupted_runs()
    silent = threading.Timer(SILENCE.total_seconds(), mark_silent_runs, [datetime.now(UTC)])
    silent.daemon = True
    silent.start()
    # Schedules stay as they are when the platform ends: what was due meanwhile runs when it is up again.
    runner = Runner(name="trainlib", pause_on_shutdown=False, query_seconds=_ASK_S)
    served = list(deployments())
    for each in served:
        runner.add_deployment(each)
    print(json.dumps({"deployments": ", ".join(f"{each.flow_name}/{each.name}" for each in served)}), flush=True)
    # Not in the main thread: there it would handle SIGTERM itself, by killing all runs.
    serving = threading.Thread(target=lambda: asyncio.run(runner.start()), name="runner", daemon=True)
    serving.start()
    while serving.is_alive():
        if told_to_end.wait(_WATCH_S):
            _end(runner, serving)
            return 0
    return 1


def _end(runner: Runner, serving: threading.Thread) -> None:
    """Interrupt all runs. Those that are to be run again are scheduled at once, but not started any more."""
    runner._scheduled_run_poller.stopping = True
    runs = psutil.Process().children()
    for run in runs:
        with suppress(psutil.NoSuchProcess):
            run.terminate()
    psutil.wait_procs(runs, _RUNS_END_S)
    runner.execute_in_background(runner.astop)
    serving.join(_RUNNER_ENDS_S)


def _wait_for_server(told_to_end: threading.Event) -> bool:
    """Wait until it answers. It starts beside this process, and takes about as long as the imports above.

    Returns False if this process is told to end meanwhile.
    """
    url = PREFECT_API_URL.value()
    deadline = time.monotonic() + _START_S
    while not answers(url):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no Prefect server answers at {url}")
        if told_to_end.wait(_LOOK_S):
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
