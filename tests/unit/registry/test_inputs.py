"""Which data and code a model version says that it came from."""

from __future__ import annotations

import json

from mlflow.entities import (
    Dataset,
    DatasetInput,
    Run,
    RunData,
    RunInfo,
    RunInputs,
    RunStatus,
    RunTag,
)

from trainlib._registry.inputs import lineage_tags


def run_with(*datasets: Dataset, **tags: str) -> Run:
    status = RunStatus.to_string(RunStatus.FINISHED)
    info = RunInfo("run", "0", "somebody", status, 0, 1, "active", "/artifacts", "a run")
    data = RunData(tags=[RunTag(key, value) for key, value in tags.items()])
    return Run(info, data, RunInputs([DatasetInput(dataset, []) for dataset in datasets]))


def test_the_data_of_a_model_version_are_named_in_its_tags():
    source = json.dumps({"uri": "/data/train", "source": "sklearn:digits", "source_digest": "1.9"})
    train = Dataset("train", "d1", "local", source, profile=json.dumps({"num_rows": 10}))
    extra = Dataset("extra: 1", "d2", "local", json.dumps({"uri": "/data/extra"}))
    assert lineage_tags(run_with(train, extra)) == {
        "trainlib.data.train": "/data/train, digest d1, 10 rows, preprocessed from sklearn:digits, digest 1.9",
        "trainlib.data.extra: 1": "/data/extra, digest d2",
    }


def test_the_code_of_a_model_version_is_named_in_its_tags():
    tags = {"mlflow.source.name": "/code/train.py", "mlflow.source.git.commit": "abc", "mlflow.user": "somebody"}
    assert lineage_tags(run_with(**tags)) == {"trainlib.code": "/code/train.py", "trainlib.git_commit": "abc"}


def test_datasets_that_somebody_else_listed_are_left_out():
    assert lineage_tags(run_with(Dataset("theirs", "d", "local", "not json"))) == {}
    assert lineage_tags(run_with(Dataset("theirs", "d", "local", json.dumps(["a"])))) == {}
