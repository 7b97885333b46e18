"""What a worker gets that its node does not have: the ``runtime_env`` of Ray's job, and that of one worker.

Nodes on other machines get a copy of the script's folder. The whole job gets it where this process joins the cluster, because
tasks of Ray Data need the code as well. Where the user has called ``ray.init()``, their ``runtime_env`` holds for the job, and
ours is that of the workers alone.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from trainlib._execution import code, liveness
from trainlib._runtime_env import RuntimeEnv
from trainlib.errors import InvalidArgumentError

__all__ = ["for_job", "for_worker", "notices"]

# So much is sent in a moment. More is worth a line.
_LARGE = 10 * 1024**2
_WORKING_DIR = "working_dir"
# What tasks of Ray Data may have to import. Environment variables are for the workers of one training.
_OF_THE_JOB = (_WORKING_DIR, "py_modules", "pip", "excludes")

_lock = threading.Lock()
_elsewhere: dict[str, bool] = {}
"""Whether a node is another machine, by its id."""
_sent: dict[tuple[str | None, str], dict[str, Any]] = {}
"""What was sent, by the connection to Ray and by what was asked for."""
_sent_for_job: tuple[str, list[str]] | None = None
"""The folder that we have sent for the whole job, and what the user has left out of it; None if we have not sent any."""
_notices: list[str] = []


def notices() -> Iterator[str]:
    """What a person should know of what was sent since the last call."""
    while _notices:
        yield _notices.pop(0)


def for_job(address: str, asked: RuntimeEnv | None) -> dict[str, Any] | None:
    """The ``runtime_env`` with which to join the cluster at an address; None if it needs none.

    Args:
        address: Where the cluster's head listens.
        asked: What the training asks for that joins it.

    Raises:
        CodeTooLargeError: the script's folder is too large to be sent.
    """
    env = {name: value for name, value in (asked.as_dict() if asked else {}).items() if name in _OF_THE_JOB}
    submitted = _submitted_job_env()
    env = {name: value for name, value in env.items() if name not in submitted}  # Ray takes each from one side only
    if _WORKING_DIR not in submitted and not _runs_in_uv() and _has_other_machines(address):
        env = _with_code(env)
    global _sent_for_job
    _sent_for_job = (env[_WORKING_DIR], env.get("excludes", [])) if _WORKING_DIR in env else None
    return _bounded(env) if env.keys() - {"excludes"} else None


def for_worker(asked: RuntimeEnv | None, node_id: str) -> str:
    """The ``runtime_env`` of a worker on a node, as JSON, with everything in it already sent. Empty if it needs none.

    Raises:
        CodeTooLargeError: the script's folder is too large to be sent.
        InvalidArgumentError: Ray does not accept it.
    """
    env = asked.for_ray() if asked else {}
    if _WORKING_DIR not in env and not _job_has_code(env) and _is_elsewhere(node_id):
        env = _with_code(env)
    return json.dumps(_uploaded(env), sort_keys=True) if env.keys() - {"excludes"} else ""


def _job_has_code(env: dict[str, Any]) -> bool:
    """Whether the job has the code of a training: what the user has sent, or what we would send for this one."""
    if not ray.get_runtime_context().runtime_env.get(_WORKING_DIR):
        return False
    if _sent_for_job is None:
        return True
    folder, excludes = _sent_for_job
    return folder == str(code.script_folder()) and excludes == env.get("excludes", excludes)


def _with_code(env: dict[str, Any]) -> dict[str, Any]:
    """With the script's folder, unless another one was asked for."""
    found = code.script_folder()
    return env if isinstance(found, code.Unsent) else {_WORKING_DIR: str(found), **env}


def _bounded(env: dict[str, Any]) -> dict[str, Any]:
    """With all that is left out of the folder that is sent."""
    folder = Path(env.get(_WORKING_DIR, ""))
    if not folder.is_absolute():  # none, or the URI of an archive
        return env
    excludes = code.excluded(folder, env.get("excludes", ()))
    measured = code.measure(folder, excludes)
    if measured.size > _LARGE:
        _notices.append(f"the code in {folder} is sent to the cluster: {measured}")
    return {**env, "excludes": excludes}


def _uploaded(env: dict[str, Any]) -> dict[str, Any]:
    """With URIs in place of local folders, which Ray takes for a whole job only. Sends what is not in the cluster yet."""
    from ray._private.runtime_env.packaging import package_exists

    key = (liveness.session(), json.dumps(env, sort_keys=True))
    with _lock:
        known = _sent.get(key)
        if known is None or not all(package_exists(uri) for uri in _packages(known)):
            known = _sent[key] = _upload(_bounded(env))
    return known


def _packages(env: dict[str, Any]) -> list[str]:
    """What Ray keeps for as long as somebody uses it, and then for ten minutes."""
    uris = [*env.get("py_modules", ()), env.get(_WORKING_DIR, "")]
    return [uri for uri in uris if uri.startswith("gcs://")]


def _upload(env: dict[str, Any]) -> dict[str, Any]:
    from ray._private.ray_constants import RAY_RUNTIME_ENV_IGNORE_GITIGNORE
    from ray._private.runtime_env.py_modules import upload_py_modules_if_needed
    from ray._private.runtime_env.working_dir import upload_working_dir_if_needed

    node: Any = ray._private.worker._global_node
    settings = {
        "include_gitignore": os.environ.get(RAY_RUNTIME_ENV_IGNORE_GITIGNORE, "0") != "1",
        "scratch_dir": node.get_runtime_env_dir_path(),
        "logger": code.quiet,
    }
    try:
        sent = upload_working_dir_if_needed(upload_py_modules_if_needed(dict(env), **settings), **settings)
    except (ray.exceptions.RuntimeEnvSetupError, ValueError) as error:
        raise InvalidArgumentError(f"runtime_env cannot be used: {error}") from error
    sent.pop("excludes", None)
    return sent


def _runs_in_uv() -> bool:
    """Whether ``uv run`` has started this process. Ray then sends the current folder, which has to be that of the project."""
    from ray._private.ray_constants import RAY_ENABLE_UV_RUN_RUNTIME_ENV
    from ray._private.runtime_env.uv_runtime_env_hook import _get_uv_run_cmdline

    return bool(RAY_ENABLE_UV_RUN_RUNTIME_ENV and _get_uv_run_cmdline())


def _submitted_job_env() -> dict[str, Any]:
    """What ``ray job submit`` has set for this process. Ray refuses to join with a second value of the same field."""
    from ray._private.runtime_env.constants import RAY_JOB_CONFIG_JSON_ENV_VAR

    submitted: dict[str, Any] = json.loads(os.environ.get(RAY_JOB_CONFIG_JSON_ENV_VAR) or "{}")
    return submitted.get("runtime_env") or {}


# -- which nodes are other machines ---------------------------------------------------------------------


def _is_elsewhere(node_id: str) -> bool:
    if node_id not in _elsewhere:
        _elsewhere.update((node["NodeID"], _is_other_machine(node)) for node in ray.nodes())
    return _elsewhere.get(node_id, False)


def _has_other_machines(address: str) -> bool:
    if address.startswith("ray://"):
        return True
    return any(node["Alive"] and _is_other_machine(node) for node in _nodes_at(address))


def _nodes_at(address: str) -> list[dict[str, Any]]:
    """The nodes of a cluster that this process has not joined."""
    from ray._private.services import canonicalize_bootstrap_address
    from ray._private.state import GlobalState
    from ray._raylet import GcsClientOptions  # type: ignore[attr-defined]

    state = GlobalState()
    head = canonicalize_bootstrap_address(address)
    options = GcsClientOptions.create(head, None, allow_cluster_id_nil=True, fetch_cluster_id_if_nil=False)
    state._initialize_global_state(options)
    try:
        return list(state.node_table())
    finally:
        state.disconnect()


def _is_other_machine(node: dict[str, Any]) -> bool:
    """Containers of one machine count as several: they have folders and names of their own."""
    return node["NodeManagerHostname"] != socket.gethostname() or not _is_own_address(node["NodeManagerAddress"])


def _is_own_address(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))  # only an address of this machine can be listened at
        except OSError:
            return False
    return True
