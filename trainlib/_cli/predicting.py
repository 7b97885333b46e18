"""``predict``: a model of the registry over a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainlib._cli import output
from trainlib._cli.options import Json, printable

if TYPE_CHECKING:
    from trainlib._prediction.run import Predictions

__all__ = ["COMMANDS"]


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            parser=printable,
            help="models:/NAME@ALIAS, models:/NAME/VERSION, a checkpoint's id, or a run, for its best checkpoint.",
        ),
    ],
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", parser=printable, help="CSV, Parquet or JSON Lines files: a path, a URI or a glob."
        ),
    ],
    predictor: Annotated[
        str | None,
        typer.Option(
            parser=printable,
            metavar="MODULE:FUNCTION",
            help="What predicts: called with the checkpoint, it returns what is called with each batch. Default: MLflow predicts.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Keep this column. Can be repeated. Default: all."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes that predict side by side.")] = 2,
    storage_path: Annotated[
        str | None,
        typer.Option(
            parser=printable, metavar="FOLDER", help="Where the folder of the predictions is made: a path or URI."
        ),
    ] = None,
    is_json: Json = False,
) -> None:
    """Predict for every row of a dataset, and write Parquet. All of it is written, or nothing."""
    from trainlib._cli.continuing import make_scripts_importable
    from trainlib._data.sources import inspect_source
    from trainlib._prediction.model_names import find_model
    from trainlib._prediction.plan import plan_prediction
    from trainlib._prediction.run import run_prediction
    from trainlib._registry.store import current_store

    make_scripts_importable()
    with current_store().in_use(), output.only_result_on_stdout(is_json):
        plan = plan_prediction(
            find_model(model),
            inspect_source(dataset),
            predictor=predictor,
            keep_columns=keep or None,
            storage_path=storage_path,
            num_workers=workers,
        )
        result = run_prediction(plan, output.line)
    output.emit(result, is_json, _show)


COMMANDS = (predict,)


def _show(result: Predictions) -> None:
    output.line(f"Predictions      {result.folder}")
    output.line(f"Rows             {result.rows}")
    output.line(f"Model            {result.model}")
