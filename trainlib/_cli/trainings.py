"""``demo``, ``resume``, ``fork``, ``rerun``, ``cancel`` and ``stacks``: trainings that run, or are run again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainlib import _storage as storage
from trainlib._cli import output
from trainlib._cli.exit_codes import ExitCode, RefusedError
from trainlib._cli.options import Json, RunArgument, Secrets, printable
from trainlib._platform import record

if TYPE_CHECKING:
    from trainlib._cli.cancelling import Cancelled
    from trainlib.flows.pipeline import PipelineResult

__all__ = ["COMMANDS"]


def demo(
    workers: Annotated[int, typer.Option(min=1, help="Processes that train together.")] = 2,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs to train.")] = 12,
    is_json: Json = False,
) -> None:
    """Preprocess data, train a small network on them, and register the best checkpoint."""
    with output.only_result_on_stdout(is_json):
        if record.running() is None:
            output.line(f"Starting Ray, Prefect and MLflow; everything is kept in {storage.home()}")
        else:
            output.line(f"Joining the platform of {storage.home()}")
        from trainlib._registry.store import current_store
        from trainlib.flows import _local as local
        from trainlib.flows.demo import digits
        from trainlib.flows.pipeline import pipeline

        spec = digits(workers, epochs)
        trainer = spec.train.build()
        result = local.run(
            lambda: pipeline(**spec.parameters()), trainer.scaling_config, trainer.backend_config, current_store()
        )
    output.emit(_demo_json(result), is_json, lambda _: _show_demo(result))


def resume(
    run: RunArgument,
    secret: Secrets = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also if it has finished.")] = False,
    is_json: Json = False,
) -> None:
    """Continue a training or a sweep that was interrupted, from its newest checkpoints, in the same MLflow run."""
    from trainlib._cli.continuing import make_scripts_importable, resumed

    make_scripts_importable()
    with output.only_result_on_stdout(is_json):
        result = resumed(run, secret or (), anyway=anyway).fit()
    _emit_run(result.run_id, is_json)


def fork(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CHECKPOINT",
            parser=printable,
            help="A run, whose newest checkpoint is taken, or a checkpoint's id.",
        ),
    ],
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of train_loop_config, with a value in JSON. Dots reach into dicts: model.depth=4. Can be repeated.",
        ),
    ] = None,
    add: Annotated[bool, typer.Option("--add", help="Let --set add settings that the config does not have.")] = False,
    name: Annotated[
        str | None,
        typer.Option(parser=printable, metavar="NAME", help="The new run. Default: the old name, marked as a fork."),
    ] = None,
    secret: Secrets = None,
    is_json: Json = False,
) -> None:
    """Start a new training from a checkpoint of another one, with other settings."""
    from trainlib._cli.continuing import forked, make_scripts_importable

    make_scripts_importable()
    trainer = forked(source, changes or (), secret or (), add=add, name=name)
    with output.only_result_on_stdout(is_json):
        result = trainer.fit()
    _emit_run(result.run_id, is_json)


def rerun(
    run: RunArgument,
    name: Annotated[
        str | None,
        typer.Option(parser=printable, metavar="NAME", help="The new run. Default: the old name, marked as a rerun."),
    ] = None,
    secret: Secrets = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also if something is no longer the same.")] = False,
    is_json: Json = False,
) -> None:
    """Run a training again, exactly as it was.

    From its beginning, as a new run: with the same function, config and data, and the same versions of Python and all
    packages. If something is no longer the same, say what, and do not run it.
    """
    from trainlib._cli.continuing import make_scripts_importable, planned_rerun

    make_scripts_importable()
    plan = planned_rerun(run, name, secret or ())
    with output.only_result_on_stdout(is_json):
        for change in plan.changes:
            output.line(f"Not as it was in MLflow run {plan.run_id}: {change}")
        if plan.changes and not anyway:
            raise RefusedError(
                "it was not run, since it would not be the same training. Pass --anyway to run it all the same"
            )
        for remark in plan.remarks:
            output.line(remark)
        result = plan.trainer.fit()
    _emit_run(result.run_id, is_json)


def cancel(
    run: RunArgument,
    timeout: Annotated[float, typer.Option(min=0, help="How many seconds to wait until it has ended.")] = 30.0,
    is_json: Json = False,
) -> int:
    """End a training or a sweep that runs. What it has saved is kept, and `resume` continues it.

    Prefect is told, if a server that is reachable here knows its flow run. Else its process gets a SIGTERM, if it is on this
    machine.
    """
    from trainlib._cli.cancelling import cancel as cancel_run
    from trainlib._registry.listing import RunState

    cancelled = cancel_run(run, timeout)
    output.emit(cancelled, is_json, _show_cancelled)
    return ExitCode.FAILED if cancelled.status is RunState.RUNNING else ExitCode.DONE


def stacks(run: RunArgument, is_json: Json = False) -> None:
    """Print what every rank of a running training is doing.

    The Python stacks of all ranks of a training that runs on this machine, with its workers here or on a cluster, or on another
    machine, if RAY_ADDRESS names its cluster: all threads, the one of the training function first. The training goes on
    undisturbed. Of a sweep, all trials that run are shown.
    """
    from trainlib._stacks import stacks_of

    if is_json:
        output.print_json({"trainings": [{"run": name, "stacks": text} for name, text in stacks_of(run)]})
        return
    for name, text in stacks_of(run):
        print(f"{name}\n\n{text}\n")  # as it is: stacks are searched and pasted


COMMANDS = (demo, resume, fork, rerun, cancel, stacks)


def _emit_run(run_id: str | None, is_json: bool) -> None:
    """Print a training that has just ended: its link, or all of it as JSON, as ``show`` does."""
    from trainlib._cli.registry import details_of
    from trainlib._cli.runs import details_json

    assert run_id is not None, "fit() gives one"
    details = details_of(run_id)
    output.emit(details_json(details), is_json, lambda _: output.line(f"MLflow run {details.links['mlflow']}"))


def _show_cancelled(cancelled: Cancelled) -> None:
    from trainlib._cli.cancelling import Way
    from trainlib._registry.listing import RunState

    how = "Prefect was told" if cancelled.by is Way.PREFECT else "its process got a SIGTERM"
    if cancelled.status is RunState.RUNNING:
        outcome = f"it still runs after {cancelled.seconds:.0f} s"
    else:
        outcome = f"it ended after {cancelled.seconds:.1f} s, and is {cancelled.status}"
    output.line(f"{cancelled.name} (MLflow run {cancelled.id}): {how}; {outcome}.")


def _demo_json(result: PipelineResult) -> dict[str, Any]:
    from trainlib.flows import _embedded as embedded

    selection, version = result.selection, result.version
    return {
        "checkpoint": selection.location,
        "iteration": selection.iteration,
        "metric": selection.metric,
        "score": selection.score,
        "model": version.name,
        "version": version.version,
        "alias": version.alias,
        "promoted": version.promoted,
        "run_id": result.training.run_id,
        "links": {
            "mlflow": result.training.run_url,
            "prefect": embedded.flow_run_url(result.training.flow_run_id or ""),
        },
    }


def _show_demo(result: PipelineResult) -> None:
    selection, version, links = result.selection, result.version, _demo_json(result)["links"]
    if version.promoted:
        place = f"alias '{version.alias}' points to it"
    else:
        place = f"alias '{version.alias}' stays with the earlier {version.previous_score:.4f}"
    summary = {
        "Best checkpoint": f"{selection.location} (iteration {selection.iteration})",
        f"Its {selection.metric}": f"{selection.score:.4f}",
        "Model": f"{version.name} version {version.version}, {place}",
        "MLflow run": links["mlflow"],
        "Prefect run": links["prefect"],
    }
    if _links_need_servers(links):
        summary["Open both UIs"] = "make ui" if os.environ.get("MAKELEVEL") else "trainlib up"
    for name, value in summary.items():
        output.line(f"{name:16} {value}")


def _links_need_servers(links: dict[str, str]) -> bool:
    """Whether the links work only while `trainlib up` runs."""
    from trainlib._registry.urls import LOCAL_UI
    from trainlib.flows import _embedded as embedded

    is_local = links["mlflow"].startswith(LOCAL_UI) or links["prefect"].startswith(embedded.LOCAL_UI)
    return is_local and record.running() is None
