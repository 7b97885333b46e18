"""The application: its commands, its help, and how its errors are shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer
from typer.main import get_command

from trainlib._cli import home, models, platform, predicting, pruning, runs, trainings
from trainlib._cli.exit_codes import ExitCode, code_of
from trainlib._cli.versions import installed_versions
from trainlib._secrets import masked_uri

__all__ = ["app", "main"]

_HELP = (
    "Training as a pipeline: Prefect, Ray and MLflow. RUN is the id of an MLflow run, the beginning of it, or its name."
)
_EXIT_CODES = (
    "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 not found; 4 refused, or in use; "
    "5 a service does not answer; 130 interrupted."
)

app = typer.Typer(
    name="trainlib",
    help=_HELP,
    epilog=_EXIT_CODES,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_versions(is_asked: bool) -> None:
    if is_asked:
        for name, version in installed_versions().items():
            typer.echo(f"{name} {version}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_versions, is_eager=True, help="Print the versions that matter, and exit."
        ),
    ] = False,
) -> None:
    """What all commands have in common. Its help is that of the application."""


for group, title in (
    (platform, "The platform"),
    (runs, "What was recorded"),
    (pruning, "What was recorded"),
    (trainings, "Trainings"),
    (models, "Models"),
    (predicting, "Models"),
    (home, "The home folder"),
):
    for command in group.COMMANDS:
        app.command(rich_help_panel=title)(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and return its exit code, one of :class:`~trainlib._cli.exit_codes.ExitCode`."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = next((each for each in given if not each.startswith("-")), "")
    try:
        returned: Any = _application().main(args=given, prog_name="trainlib", standalone_mode=False)
    except typer.TyperException as error:
        _complain(command if command in _names() else "", error.format_message())
        return ExitCode.USAGE
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except Exception as error:
        if (code := code_of(error)) is None:
            raise
        _complain(command, str(error) or type(error).__name__)
        return code
    return returned if isinstance(returned, int) else ExitCode.DONE


@cache
def _application() -> Any:
    return get_command(app)


def _names() -> set[str]:
    return {str(getattr(command.callback, "__name__", "")) for command in app.registered_commands}


def _complain(command: str, message: str) -> None:
    """Print an error as one line, in red where there are colours. What else it has to show, such as a log, comes below."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    first, *more = masked_uri(message).strip().splitlines() or [""]
    who = f"trainlib {command}" if command else "trainlib"
    console.print(f"{who}: {first}", style="red", soft_wrap=True, markup=False)
    for each in more:
        console.print(each, soft_wrap=True, markup=False)
