"""``promote`` and ``rollback``: which version of a model has an alias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainlib._cli import output
from trainlib._cli.options import Alias, Json, printable

if TYPE_CHECKING:
    from trainlib._registry.aliases import AliasMove

__all__ = ["COMMANDS"]

_Model = Annotated[str, typer.Argument(metavar="MODEL", parser=printable, help="The name of a registered model.")]


def promote(
    what: Annotated[
        str, typer.Argument(metavar="MODEL|CHECKPOINT", parser=printable, help="A model's name, or a checkpoint's id.")
    ],
    alias: Alias = "best",
    version: Annotated[int | None, typer.Option(min=1, help="The version of the model. Default: the newest.")] = None,
    model: Annotated[
        str | None,
        typer.Option(parser=printable, metavar="NAME", help="The model that a checkpoint becomes a version of."),
    ] = None,
    is_json: Json = False,
) -> None:
    """Point an alias to a version of a model, or to a checkpoint, which becomes a version of `--model`.

    The alias is moved in any case: nothing is compared.
    """
    from trainlib._continuing.recorded import is_checkpoint_id
    from trainlib._registry.models import promote_checkpoint, promote_version

    if is_checkpoint_id(what):
        if model is None:
            raise typer.BadParameter("a checkpoint becomes a version of a model: say of which", param_hint="'--model'")
        if version is not None:
            raise typer.BadParameter("a checkpoint gets a version of its own: leave it out", param_hint="'--version'")
        move = promote_checkpoint(what, model, alias)
    else:
        if model is not None:
            raise typer.BadParameter(f"{what!r} is a model already: leave it out", param_hint="'--model'")
        move = promote_version(what, alias, None if version is None else str(version))
    output.emit(move, is_json, _show_move)


def rollback(model: _Model, alias: Alias = "best", is_json: Json = False) -> None:
    """Point an alias back to the version that had it before. Once more goes back further."""
    from trainlib._registry.models import roll_back_alias

    output.emit(roll_back_alias(model, alias), is_json, _show_move)


COMMANDS = (promote, rollback)


def _show_move(move: AliasMove) -> None:
    before = f"before: version {move.previous}" if move.previous is not None else "it is new"
    output.line(f"{move.model}: alias '{move.alias}' points to version {move.version} ({before})")
