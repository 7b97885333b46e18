"""The options and arguments that several commands have in common, and how they are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

__all__ = ["Alias", "Folder", "Json", "Limit", "Mode", "RunArgument", "Secrets", "printable"]


def printable(text: str) -> str:
    """A name or an id, as a person would type it.

    Raises:
        BadParameter: it is blank, or has characters that cannot be seen.
    """
    if not text.strip() or not text.isprintable():
        raise typer.BadParameter(f"{text!r} is blank, or has characters that cannot be printed")
    return text


def _folder(text: Any) -> Path:
    return Path(printable(str(text)))


Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", parser=printable, help="The id of an MLflow run, the beginning of it, or its name."),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", parser=_folder)]
Alias = Annotated[str, typer.Option("--alias", parser=printable, metavar="ALIAS", help="The alias.")]
Mode = Annotated[
    Literal["max", "min"], typer.Option("--mode", help="Whether a high or a low value of the metric is better.")
]
Limit = Annotated[int, typer.Option(min=1, help="How many to list at most.")]
Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        metavar="KEY=VARIABLE",
        help="A setting that was not saved, being secret, and the environment variable that has it. Can be repeated.",
    ),
]
