"""What ``trainlib doctor`` looks at. Each check returns what it has found, and changes nothing."""

from __future__ import annotations

import os
import platform as machine
import shutil
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from trainlib import __version__
from trainlib import _storage as storage
from trainlib._cli import words
from trainlib._cli.findings import Finding, Health
from trainlib._cli.frameworks import examine_frameworks
from trainlib._cli.services import prefect_api, ray_address
from trainlib._distributions import version_of
from trainlib._format import FORMAT
from trainlib._home import FORMAT_FILE, read_format
from trainlib._platform import joining, record
from trainlib._secrets import masked_uri, without_login
from trainlib.errors import FormatError, TrainlibError

__all__ = ["CHECKS", "Finding", "Health", "examine"]

_ANSWER_S = 5.0
_LITTLE_DISK = 5 * 1024**3
_NO_DISK = 200 * 1024**2


def examine() -> list[Finding]:
    """Look at everything."""
    return [finding for check in CHECKS for finding in check()]


def _python() -> Iterator[Finding]:
    yield Finding("Python", Health.OK, f"{machine.python_version()} in {sys.prefix}")


def _home() -> Iterator[Finding]:
    home = storage.home()
    if not home.exists():
        yield Finding("home", Health.NOTE, f"{home} does not exist yet", "The first training makes it.")
        return
    if not os.access(home, os.W_OK | os.X_OK):
        advice = f"Make it yours (chown), or set TRAINLIB_HOME to another folder than {home}."
        yield Finding("home", Health.PROBLEM, f"{home} cannot be written to by this user", advice)
        return
    try:
        version = read_format(home / FORMAT_FILE)
    except FormatError as error:
        yield Finding("home", Health.PROBLEM, str(error), "Restore it with `trainlib restore`, or delete that file.")
        return
    if version is not None and version > FORMAT:
        detail = f"{home} was written by a newer trainlib (format {version}; this one reads up to {FORMAT})"
        yield Finding("home", Health.PROBLEM, detail, "Upgrade trainlib, or set TRAINLIB_HOME to another folder.")
    elif stat.S_IMODE(home.stat().st_mode) & 0o077:
        detail = f"{home} can be read by others: its databases and settings are nobody else's business"
        yield Finding("home", Health.PROBLEM, detail, f"chmod 700 {home}")
    else:
        yield Finding("home", Health.OK, f"{home} (format {version or FORMAT}), readable by you alone")


def _disk() -> Iterator[Finding]:
    folder = next(each for each in (storage.home(), *storage.home().parents) if each.exists())
    free = shutil.disk_usage(folder).free
    detail = f"{words.size(free)} free for {storage.home()}"
    if free < _NO_DISK:
        yield Finding("disk", Health.PROBLEM, detail, "Free some space: no checkpoint can be saved soon.")
    elif free < _LITTLE_DISK:
        advice = "Keep fewer checkpoints (CheckpointConfig.num_to_keep), or set RunConfig.storage_path."
        yield Finding("disk", Health.NOTE, detail, advice)
    else:
        yield Finding("disk", Health.OK, detail)


def _platform() -> Iterator[Finding]:
    platform = record.running()
    if platform is None:
        advice = "`trainlib up` starts one: scripts begin sooner then, and both UIs are served."
        yield Finding("platform", Health.NOTE, "none is up in this home", advice)
    elif not joining.is_same_environment(platform):
        theirs, ours = f"trainlib {platform.version} in {platform.python}", f"trainlib {__version__} in {sys.prefix}"
        advice = "`trainlib down`, then `trainlib up` from this environment. Or set TRAINLIB_HOME to another folder."
        yield Finding("platform", Health.PROBLEM, f"{theirs} is up, and this is {ours}: scripts cannot join it", advice)
    else:
        yield Finding("platform", Health.OK, f"up: {platform.prefect}, {platform.mlflow}")


def _prefect() -> Iterator[Finding]:
    version = version_of("prefect")
    address = prefect_api()
    if address is None:
        yield Finding("Prefect", Health.OK, f"{version}; each script starts a server of its own")
        return
    yield _answering(
        "Prefect", f"{version} at {masked_uri(address)}", f"{address.rstrip('/')}/health", "PREFECT_API_URL"
    )


def _mlflow() -> Iterator[Finding]:
    from trainlib._registry.client import is_server
    from trainlib._registry.store import default_store

    version = version_of("mlflow")
    try:
        uri = default_store().uri
    except TrainlibError as error:  # a platform is up that this environment cannot join, or its password is gone
        yield Finding("MLflow", Health.PROBLEM, str(error), "See what is said about the platform.")
        return
    if is_server(uri):
        health = f"{without_login(uri).rstrip('/')}/health"
        yield _answering("MLflow", f"{version} at {masked_uri(uri)}", health, "MLFLOW_TRACKING_URI")
        return
    database = Path(uri.removeprefix("sqlite:///"))
    if not uri.startswith("sqlite:///"):
        yield Finding("MLflow", Health.OK, f"{version}; runs are kept in {masked_uri(uri)}")
    elif not database.exists():
        yield Finding("MLflow", Health.OK, f"{version}; runs will be kept in {database}, which the first one makes")
    else:
        yield Finding(
            "MLflow", Health.OK, f"{version}; runs are kept in {database}, {words.size(database.stat().st_size)}"
        )


def _ray() -> Iterator[Finding]:
    version, address = version_of("ray"), ray_address()
    if address is None:
        yield Finding("Ray", Health.OK, f"{version}; each script starts a local Ray")
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdigit()):
        yield Finding("Ray", Health.NOTE, f"{version} at {address}, which was not tried", "Write it like host:6379.")
        return
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
    except (OSError, OverflowError) as error:
        advice = "Start it, correct RAY_ADDRESS, or unset it to train on this machine."
        yield Finding("Ray", Health.PROBLEM, f"nobody answers at {address} ({error})", advice)
        return
    yield Finding("Ray", Health.OK, f"{version} at {address}")


def _answering(name: str, detail: str, url: str, variable: str) -> Finding:
    """Whether a server answers at all. One that asks for a password does."""
    try:
        urllib.request.urlopen(url, timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        pass
    except (OSError, ValueError) as error:
        advice = f"Start it, correct {variable}, or unset it to do without a server."
        return Finding(name, Health.PROBLEM, f"{detail} does not answer ({getattr(error, 'reason', error)})", advice)
    return Finding(name, Health.OK, f"{detail}, which answers")


def _gpus() -> Iterator[Finding]:
    found = _nvidia_gpus()
    if found is None:
        yield Finding(
            "GPUs", Health.NOTE, "none: there is no NVIDIA driver here", "To train on GPUs, install the driver."
        )
    elif isinstance(found, str):
        yield Finding(
            "GPUs", Health.PROBLEM, f"nvidia-smi fails: {found}", "Repair the NVIDIA driver, or restart the machine."
        )
    elif "+cpu" in (version_of("torch") or ""):
        advice = "Install a build of torch for CUDA: see https://pytorch.org/get-started/locally"
        yield Finding("GPUs", Health.PROBLEM, f"{', '.join(found)}, but torch is a build for CPUs", advice)
    else:
        yield Finding("GPUs", Health.OK, ", ".join(found) or "none")


def _nvidia_gpus() -> list[str] | str | None:
    """The names of the GPUs; what went wrong; or None if there is no driver."""
    if (command := shutil.which("nvidia-smi")) is None:
        return None
    query = [command, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode != 0:
        return (
            (done.stderr or done.stdout).strip().splitlines()[-1]
            if (done.stderr or done.stdout).strip()
            else "no message"
        )
    return [name.strip() for name in done.stdout.splitlines() if name.strip()]


def _machine() -> Iterator[Finding]:
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = psutil.virtual_memory()
    detail = f"{cores} CPUs, {words.size(memory.available)} of {words.size(memory.total)} memory free"
    if memory.available < 1024**3:
        yield Finding(
            "machine", Health.NOTE, detail, "Ray ends workers when memory runs out: end other programs, or use fewer."
        )
    else:
        yield Finding("machine", Health.OK, detail)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    *(_python, _home, _disk, _machine, _gpus),
    *(_platform, _prefect, _mlflow, _ray, examine_frameworks),
)
"""All checks, in the order in which they are shown."""
