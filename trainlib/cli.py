"""The command line: ``trainlib demo``, ``up``, ``stacks``, ``rerun``, ``backup`` and ``restore``."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from trainlib import __version__
from trainlib import _storage as storage
from trainlib.errors import TrainlibError

__all__ = ["main"]

MLFLOW_PORT = 5000
PREFECT_PORT = 4200
_START_S = 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="trainlib", description="Training as a pipeline: Prefect, Ray and MLflow.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo", help="preprocess data, train a small network on them, and register the best checkpoint"
    )
    demo.add_argument(
        "--workers", type=_positive, default=2, help="processes that train together (default: %(default)s)"
    )
    demo.add_argument("--epochs", type=_positive, default=12, help="epochs to train (default: %(default)s)")
    up = commands.add_parser("up", help="serve the Prefect and MLflow UIs on the local databases")
    up.add_argument("--prefect-port", type=_port, default=PREFECT_PORT, help="default: %(default)s")
    up.add_argument("--mlflow-port", type=_port, default=MLFLOW_PORT, help="default: %(default)s")
    stacks = commands.add_parser(
        "stacks",
        help="print what every rank of a running training is doing",
        description="Print the Python stacks of all ranks of a training that runs on this machine, with its workers here or on "
        "a cluster: all threads, the one of the training function first. The training goes on undisturbed.",
    )
    stacks.add_argument(
        "run", type=_name, help="the id or the name of its MLflow run; of a sweep, all trials that run are shown"
    )
    rerun = commands.add_parser(
        "rerun",
        help="run a training again, exactly as it was",
        description="Run a training again, from its beginning, as a new run: with the same function, config and data, and the "
        "same versions of Python and all packages. If something is no longer the same, say what, and do not run it.",
    )
    rerun.add_argument("run", type=_name, help="the id or the name of its MLflow run")
    rerun.add_argument(
        "--name", type=_name, help="the name of the new run (default: that of the old one, marked as a rerun)"
    )
    rerun.add_argument("--anyway", action="store_true", help="run it even if something is no longer the same")
    backup = commands.add_parser(
        "backup", help="copy the home folder and both local databases into a new folder, also while trainings run"
    )
    backup.add_argument("folder", type=_folder, help="the new folder")
    restore = commands.add_parser("restore", help="make an empty home folder what a backup was made of")
    restore.add_argument("folder", type=_folder, help="the folder of the backup")
    options = parser.parse_args(arguments)
    try:
        if options.command == "stacks":
            return show_stacks(options.run)
        if options.command == "rerun":
            return run_again(options.run, options.name, options.anyway)
        if options.command == "backup":
            return back_up_home(options.folder)
        if options.command == "restore":
            return restore_home(options.folder)
        if options.command == "demo":
            return run_demo(options.workers, options.epochs)
        return serve(options.prefect_port, options.mlflow_port)
    except (TrainlibError, ImportError, ValueError, OSError) as error:
        Console(stderr=True).print(f"trainlib {options.command}: {error}", style="red", soft_wrap=True, markup=False)
        return 1
    except KeyboardInterrupt:
        return 130


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: choose a number from 1 to 65535")
    return int(text)


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is neither the name nor the id of a run")
    return text


def _folder(text: str) -> Path:
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is not the path of a folder")
    return Path(text)


def run_demo(workers: int, epochs: int) -> int:
    """Run the pipeline on a file of handwritten digits, and show the result."""
    console = Console(highlight=False)
    console.print(f"Starting Ray, Prefect and MLflow; everything is kept in {storage.home()}", soft_wrap=True)
    from trainlib._registry.store import current_store
    from trainlib.flows import _embedded as embedded
    from trainlib.flows import _local as local
    from trainlib.flows.demo import digits
    from trainlib.flows.pipeline import pipeline

    spec = digits(workers, epochs)
    trainer = spec.train.trainer()
    result = local.run(lambda: pipeline(spec), trainer.scaling_config, trainer.backend_config, current_store())
    selection, version = result.selection, result.version
    if version.promoted:
        place = f"alias '{version.alias}' points to it"
    else:
        place = f"alias '{version.alias}' stays with the earlier {version.previous_score:.4f}"
    summary = {
        "Best checkpoint": f"{selection.location} (iteration {selection.iteration})",
        f"Its {selection.metric}": f"{selection.score:.4f}",
        "Model": f"{version.name} version {version.version}, {place}",
        "MLflow run": result.training.run_url,
        "Prefect run": embedded.flow_run_url(result.training.flow_run_id or ""),
    }
    if _links_need_servers(result.training.run_url or ""):
        summary["Open both UIs"] = "make ui" if os.environ.get("MAKELEVEL") else "trainlib up"
    for name, value in summary.items():
        console.print(f"{name:16} {value}", soft_wrap=True, markup=False)
    return 0


def show_stacks(run: str) -> int:
    """Print what the ranks of a training are doing."""
    from trainlib._stacks import stacks_of

    for name, text in stacks_of(run):
        print(f"{name}\n\n{text}\n")  # as it is: stacks are searched and pasted
    return 0


def run_again(run: str, name: str | None, anyway: bool) -> int:
    """Run a training again, unless something has changed since."""
    from trainlib._rerun import plan_rerun

    console = Console(highlight=False)
    plan = plan_rerun(run, name)
    for change in plan.changes:
        console.print(f"Not as it was in MLflow run {plan.run_id}: {change}", soft_wrap=True, markup=False)
    if plan.changes and not anyway:
        raise ValueError(
            "it was not run, since it would not be the same training. Pass --anyway to run it all the same"
        )
    result = plan.trainer.fit()
    console.print(f"MLflow run {result.run_url}", soft_wrap=True, markup=False)
    return 0


def back_up_home(folder: Path) -> int:
    """Copy the home folder."""
    from trainlib._backup import back_up
    from trainlib.flows._serve import database_file

    backup = back_up(folder.absolute(), storage.home(), database_file())
    console = Console(highlight=False)
    console.print(
        f"{storage.home()} is copied to {folder.absolute()}, {backup.checkpoints} checkpoints", soft_wrap=True
    )
    for location in backup.elsewhere:
        console.print(f"Not copied, since it is not in that folder: {location}", soft_wrap=True)
    return 0


def restore_home(folder: Path) -> int:
    """Put a copy of a home folder back."""
    from trainlib._backup import put_back
    from trainlib.flows._serve import database_file

    backup = put_back(folder.absolute(), storage.home(), database_file())
    Console(highlight=False).print(
        f"{storage.home()} is what {backup.home} was, {backup.checkpoints} checkpoints", soft_wrap=True
    )
    return 0


def _links_need_servers(run_url: str) -> bool:
    """Whether the links work only while `trainlib up` runs."""
    from trainlib._registry.client import LOCAL_UI
    from trainlib.flows import _embedded as embedded

    return run_url.startswith(LOCAL_UI) or embedded.flow_run_url("").startswith(embedded.LOCAL_UI)


def serve(prefect_port: int, mlflow_port: int) -> int:
    """Serve both UIs until Ctrl-C."""
    from trainlib._registry.client import connect
    from trainlib._registry.store import current_store
    from trainlib.flows._serve import one_at_a_time

    for port, option in ((prefect_port, "--prefect-port"), (mlflow_port, "--mlflow-port")):
        _require_free(port, option)
    store = current_store()
    connect(store)
    log = storage.home() / "logs"
    log.mkdir(parents=True, exist_ok=True)
    python = sys.executable
    environment = {
        **os.environ,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_API_URL": f"http://127.0.0.1:{prefect_port}/api",  # else its pages ask the default port
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    commands = {
        "Prefect": [python, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(prefect_port)],
        "MLflow": [
            *(python, "-m", "mlflow", "server", "--backend-store-uri", store.uri, "--workers", "1"),
            *("--host", "127.0.0.1", "--port", str(mlflow_port)),
        ],
    }
    servers: dict[str, subprocess.Popen[bytes]] = {}
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # as Ctrl-C: no server is left behind
    try:
        console = Console(highlight=False)
        addresses = {"Prefect": f"http://127.0.0.1:{prefect_port}", "MLflow": f"http://127.0.0.1:{mlflow_port}"}
        console.print("Starting both servers ...")
        with one_at_a_time():  # a script that starts now waits until Prefect's database is complete
            for name, command in commands.items():
                with open(log / f"{name.lower()}-ui.log", "ab") as output:
                    servers[name] = subprocess.Popen(
                        command, stdout=output, stderr=output, env=environment, start_new_session=True
                    )
            _wait_until_it_answers("Prefect", f"{addresses['Prefect']}/api/health", servers["Prefect"], str(log))
        _wait_until_it_answers("MLflow", f"{addresses['MLflow']}/health", servers["MLflow"], str(log))
        for name, address in addresses.items():
            console.print(f"{name:8} {address}", soft_wrap=True)
        console.print("Ctrl-C ends both.")
        while all(server.poll() is None for server in servers.values()):
            time.sleep(0.5)
        ended = ", ".join(name for name, server in servers.items() if server.poll() is not None)
        raise OSError(f"{ended} ended by itself: see {log}")
    finally:
        for server in servers.values():
            server.terminate()
        for server in servers.values():
            try:
                server.wait(5)
            except subprocess.TimeoutExpired:
                server.kill()


def _require_free(port: int, option: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise OSError(f"port {port} is taken: stop what uses it, or choose another with {option}") from error


def _wait_until_it_answers(name: str, url: str, server: subprocess.Popen[bytes], log: str) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=2.0).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise OSError(f"the {name} server did not start: see {log}") from None
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
