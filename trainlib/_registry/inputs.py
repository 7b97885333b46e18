"""Which data a run was trained on: as inputs of the run, and as tags of the model versions that come of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainlib._registry import tags

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

    from trainlib._data.datasets import DatasetFacts

_LONGEST_SCHEMA = 60_000
_LONGEST_NAME = 500
_ADDED_MEANWHILE = re.compile("unique|duplicate", re.IGNORECASE)
"""What databases say of a row that is there already: SQLite and PostgreSQL, and MySQL."""


def log_inputs(client: MlflowClient, run_id: str, facts: Sequence[DatasetFacts]) -> None:
    """List datasets as inputs of a run. A dataset that is listed already is not listed twice."""
    from mlflow.entities import Dataset, DatasetInput, InputTag
    from mlflow.exceptions import MlflowException

    datasets = [
        DatasetInput(
            Dataset(
                name=each.name[:_LONGEST_NAME],
                digest=each.digest,
                source_type=each.kind,
                source=json.dumps({"uri": each.source, **each.made_from}),
                schema=_schema(each),
                profile=json.dumps({"num_rows": each.rows}) if each.rows is not None else None,
            ),
            [InputTag(tags.MLFLOW_DATA_CONTEXT, each.name)],
        )
        for each in facts
    ]
    # MLflow looks whether the experiment knows a dataset, and adds it if not: of two trials that list a new one in the same
    # instant, the second fails. It has written nothing then, and finds the dataset when it tries again.
    for _ in facts:
        try:
            return client.log_inputs(run_id, datasets=datasets)
        except MlflowException as error:
            if not _ADDED_MEANWHILE.search(str(error)):
                raise
    return client.log_inputs(run_id, datasets=datasets)


def lineage_tags(run: Run) -> dict[str, str]:
    """The tags of a model version that say which data and code its run came from."""
    found: dict[str, str] = {}
    for listed in run.inputs.dataset_inputs if run.inputs else ():
        data = listed.dataset
        try:
            source = json.loads(data.source)
            rows = json.loads(data.profile or "{}").get("num_rows")
        except (ValueError, AttributeError):
            source, rows = None, None
        if not isinstance(source, dict) or "uri" not in source:
            continue  # not one that trainlib listed
        text = f"{source['uri']}, digest {data.digest}" + (f", {rows} rows" if rows is not None else "")
        if "source" in source:
            text += f", preprocessed from {source['source']}, digest {source['source_digest']}"
        found[tags.data(data.name)] = text
    for of_run, of_version in ((tags.MLFLOW_SOURCE_NAME, tags.CODE), (tags.MLFLOW_GIT_COMMIT, tags.GIT_COMMIT)):
        if of_run in run.data.tags:
            found[of_version] = run.data.tags[of_run]
    return found


def _schema(facts: DatasetFacts) -> str | None:
    """The columns as MLflow's UI shows them."""
    if facts.columns is None:
        return None
    columns = [{"type": _mlflow_type(kind), "name": name, "required": True} for name, kind in facts.columns.items()]
    text = json.dumps({"mlflow_colspec": columns})
    return text if len(text) <= _LONGEST_SCHEMA else None


def _mlflow_type(kind: str) -> str:
    """What MLflow calls a type of a column.

    Example:
        >>> _mlflow_type("int64"), _mlflow_type("double"), _mlflow_type("list<item: float>")
        ('long', 'double', 'string')
    """
    known = {
        "int64": "long",
        "uint32": "long",
        "uint64": "long",
        "int32": "integer",
        "int16": "integer",
        "int8": "integer",
        "uint8": "integer",
        "uint16": "integer",
        "double": "double",
        "float64": "double",
        "float": "float",
        "float32": "float",
        "halffloat": "float",
        "bool": "boolean",
        "binary": "binary",
    }
    return known.get(kind, "datetime" if kind.startswith(("timestamp", "date", "datetime")) else "string")
