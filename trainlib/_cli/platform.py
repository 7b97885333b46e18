"""``up``, ``down``, ``status`` and ``logs``: the platform of this home. And ``doctor``: what there is, and what is wrong."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainlib._cli import output
from trainlib._cli.exit_codes import ExitCode
from trainlib._cli.options import Json, printable

if TYPE_CHECKING:
    from trainlib._cli.checks import Finding
    from trainlib._platform.commands import ServiceStatus

__all__ = ["COMMANDS"]

MLFLOW_PORT = 5000
PREFECT_PORT = 4200
_FOLLOW_S = 0.5


def up(
    prefect_port: Annotated[int, typer.Option(min=1, max=65535, help="Where Prefect serves.")] = PREFECT_PORT,
    mlflow_port: Annotated[int, typer.Option(min=1, max=65535, help="Where MLflow serves.")] = MLFLOW_PORT,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once it is up, and leave it running.")] = False,
    auth: Annotated[bool, typer.Option("--auth", help="Let both servers ask for a password.")] = False,
    is_json: Json = False,
) -> None:
    """Start Prefect, MLflow and Ray for this home, on this machine. Scripts in the same home use them. Ctrl-C ends all."""
    from trainlib._platform import commands

    if is_json and not detach:
        raise typer.BadParameter("it prints the services once they are up: pass --detach, too", param_hint="--json")
    with output.only_result_on_stdout(is_json):
        commands.up(prefect_port=prefect_port, mlflow_port=mlflow_port, detach=detach, auth=auth)
    if is_json:
        output.print_json({"services": commands.status()})


def down(is_json: Json = False) -> int:
    """End the platform of this home."""
    from trainlib._platform import commands

    was_up = commands.down()
    output.emit(
        {"was_up": was_up},
        is_json,
        lambda _: output.line("The platform has ended." if was_up else "Nothing was up in this home."),
    )
    return ExitCode.DONE if was_up else ExitCode.NOT_FOUND


def status(is_json: Json = False) -> int:
    """Show what runs where. The exit code is 3 if nothing is up."""
    from trainlib._platform import commands

    services = commands.status()
    output.emit({"services": services}, is_json, lambda _: _show_services(services))
    return ExitCode.DONE if services else ExitCode.NOT_FOUND


def logs(
    service: Annotated[str | None, typer.Argument(metavar="SERVICE", parser=printable, help="Default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print what is added, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="So many of the last lines of each.")] = 50,
    is_json: Json = False,
) -> None:
    """Print what the services of the platform have logged."""
    from trainlib._platform import commands

    files = commands.log_files()
    if service is not None and service not in files:
        known = ", ".join(files) or "none"
        raise FileNotFoundError(f"there is no log of {service!r}; there are: {known}")
    if is_json and follow:
        raise typer.BadParameter("lines that are still to come are no JSON: leave out --follow", param_hint="--json")
    chosen = files if service is None else {service: files[service]}
    if is_json:
        output.print_json({"logs": {name: last_lines(file, lines) for name, file in chosen.items()}})
        return
    for name, file in chosen.items():
        for text in last_lines(file, lines):
            print(text if len(chosen) == 1 else f"{name}: {text}")
    if follow:
        for name, text in _added(chosen):
            print(text if len(chosen) == 1 else f"{name}: {text}", flush=True)


def doctor(is_json: Json = False) -> int:
    """Look at everything that a training needs, and say what to do about what is wrong. The exit code is 1 if something is."""
    from trainlib._cli.checks import Health, examine
    from trainlib._cli.versions import installed_versions

    findings = examine()
    is_broken = any(finding.health is Health.PROBLEM for finding in findings)
    report = {"ok": not is_broken, "versions": installed_versions(), "findings": findings}
    output.emit(report, is_json, lambda _: _show_findings(findings))
    return ExitCode.FAILED if is_broken else ExitCode.DONE


COMMANDS = (up, down, status, logs, doctor)


def last_lines(file: Path, count: int) -> list[str]:
    """The last lines of a file. None if it does not exist."""
    if not file.exists():
        return []
    with open(file, errors="replace") as text:
        return [line.rstrip("\n") for line in deque(text, maxlen=count)]


def _added(files: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """What is added to files from now on, line by line. A file may be made later, or anew."""
    read = {name: file.stat().st_size if file.exists() else 0 for name, file in files.items()}
    while True:
        for name, file in files.items():
            if not file.exists():
                continue
            if file.stat().st_size < read[name]:
                read[name] = 0
            with open(file, "rb") as text:
                text.seek(read[name])
                complete, end, _ = text.read().rpartition(b"\n")
            read[name] += len(complete) + len(end)
            if end:
                yield from ((name, line.decode(errors="replace")) for line in complete.split(b"\n"))
        time.sleep(_FOLLOW_S)


def _show_services(services: list[ServiceStatus]) -> None:
    if not services:
        output.line("Nothing is up in this home. To start it: trainlib up")
        return
    rows = [
        [each.name, str(each.state), each.address or "", "" if each.pid is None else str(each.pid), each.detail or ""]
        for each in services
    ]
    output.table(["service", "state", "address", "pid", "log"], rows, folded=("log",))


def _show_findings(findings: list[Finding]) -> None:
    rows = [[each.name, str(each.health), each.detail] for each in findings]
    output.table(["what", "", "found"], rows, folded=("found",))
    for finding in findings:
        if finding.advice:
            output.line(f"\n{finding.name}: {finding.advice}")
