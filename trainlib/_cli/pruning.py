"""``prune``: checkpoints that nobody needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainlib._cli import output, words
from trainlib._cli.options import Json, Mode, printable

if TYPE_CHECKING:
    from trainlib._registry.pruning import PruneResult

__all__ = ["COMMANDS"]


def prune(
    keep: Annotated[int, typer.Option(min=0, help="How many checkpoints of each run stay.")] = 3,
    metric: Annotated[
        str | None,
        typer.Option(
            parser=printable, metavar="NAME", help="The metric of the best ones, which stay. Default: the newest."
        ),
    ] = None,
    mode: Mode = "max",
    older_than_days: Annotated[float, typer.Option(min=0, help="Younger ones stay.")] = 30.0,
    experiment: Annotated[
        str | None, typer.Option(parser=printable, metavar="NAME", help="Only of this experiment.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete them. Otherwise they are only listed.")] = False,
    is_json: Json = False,
) -> None:
    """List checkpoints that nobody needs any more, and delete them with `--delete`.

    Those of trainings that run stay, and so do the newest of a run that can be resumed, those that a registered model refers to, and
    those that an unfinished training was forked from.
    """
    from trainlib._registry.prune_policy import Policy
    from trainlib._registry.pruning import prune as prune_registry

    policy = Policy(keep=keep, metric=metric, mode=mode, older_than_days=older_than_days, experiment=experiment)
    result = prune_registry(policy, dry_run=not delete)
    output.emit(_json(result), is_json, lambda _: _show(result))


COMMANDS = (prune,)


def _json(result: PruneResult) -> dict[str, Any]:
    checkpoints = [
        {
            "id": each.checkpoint.model_id,
            "run_id": each.run_id,
            "saved": each.saved,
            "bytes": each.size,
            "location": each.checkpoint.location,
        }
        for each in result.deleted
    ]
    return {
        "is_dry_run": result.is_dry_run,
        "bytes": result.freed,
        "kept": result.kept,
        "checkpoints": output.as_json(checkpoints),
    }


def _show(result: PruneResult) -> None:
    if result.deleted:
        rows = [
            [
                each.checkpoint.model_id,
                each.run_name,
                str(each.checkpoint.iteration),
                words.moment(each.saved),
                f"{each.size / 1e6:.2f}",
            ]
            for each in result.deleted
        ]
        output.table(["id", "run", "iteration", "saved", "MB"], rows, folded=("run",))
    output.line(result.summary + (" To delete them: --delete" if result.is_dry_run and result.deleted else ""))
