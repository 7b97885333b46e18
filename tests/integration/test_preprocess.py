"""Preparing data: split as asked for, scaled by the training part, kept once, and refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import ray.data
from pydantic import ValidationError

from tests.integration.conftest import Driver
from trainlib import _storage as storage
from trainlib._data.manifest import PreprocessedData
from trainlib._data.preprocess import plan_preprocessing, run_preprocessing
from trainlib._data.spec import PreprocessSpec, SplitSpec, StepSpec
from trainlib._data.writing import write_parquet
from trainlib._execution import cluster
from trainlib.errors import DataError

SCALED = [StepSpec(name="StandardScaler", columns=["x"])]


def people(rows: int = 100) -> pd.DataFrame:
    """Up to 100 rows, of four classes of different sizes, with days in no order."""
    rng = np.random.default_rng(0)
    classes = np.repeat(["a", "b", "c", "d"], [70, 20, 9, 1])[:rows]
    table = pd.DataFrame(
        {"x": np.arange(rows, dtype=float), "kind": classes, "who": [f"p{i % 10}" for i in range(rows)]}
    )
    return table.assign(day=rng.permutation(rows), label=np.arange(rows) % 3)


def prepared(source, tmp_path: Path, say: Callable[[str], None] = lambda text: None, **spec) -> PreprocessedData:
    settings = {"target": "label", "storage_path": str(tmp_path / "prepared"), **spec}
    return run_preprocessing(plan_preprocessing(PreprocessSpec(source=str(source), **settings)), say)


def parts(data: PreprocessedData) -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.read_parquet(data.train), pd.read_parquet(data.validation)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path / "people.csv"


@pytest.mark.parametrize("by", ["shuffle", "stratify", "time", "hash"])
def test_rows_are_split_as_asked_for(source, tmp_path, by):
    column = {"stratify": "kind", "time": "day", "hash": "who"}.get(by)
    split = SplitSpec(by=by, column=column, size=0.25)
    data = prepared(source, tmp_path, split=split)
    train, validation = parts(data)
    assert (len(train), len(validation)) == (data.train_rows, data.validation_rows)
    every = pd.concat([train, validation]).sort_values("x").reset_index(drop=True)
    pd.testing.assert_frame_equal(every, people(), check_dtype=False)
    if by == "shuffle":
        assert len(validation) == 25
        assert not validation["x"].is_monotonic_increasing
    elif by == "stratify":
        assert dict(validation["kind"].value_counts()) == {"a": 17, "b": 5, "c": 2}
    elif by == "time":
        assert len(validation) == 25
        assert validation["day"].min() > train["day"].max()
    else:
        assert set(train["who"]).isdisjoint(validation["who"])
        assert len(validation), "some of ten keys are for validation"


@pytest.mark.parametrize("by", ["shuffle", "stratify", "time", "hash"])
def test_held_out_rows_are_in_no_other_part_and_stay_as_they_were_read(source, tmp_path, by):
    column = {"stratify": "kind", "time": "day", "hash": "who"}.get(by)
    split = SplitSpec(by=by, column=column, size=0.25, test_size=0.2)
    data = prepared(source, tmp_path, split=split, steps=SCALED)
    train, validation = parts(data)
    assert data.test is not None
    test = pd.read_parquet(data.test)
    assert (len(train), len(validation), len(test)) == (data.train_rows, data.validation_rows, data.test_rows)
    assert sorted([*train["day"], *validation["day"], *test["day"]]) == list(range(100))
    read = people().set_index("day")["x"]
    assert list(test["x"]) == list(read[test["day"]]), "nothing is applied to them"
    assert set(data.datasets) == {"train", "validation"}, "a trainer does not get them"
    if by == "hash":
        assert all(
            set(one["who"]).isdisjoint(other["who"]) for one, other in combinations((train, validation, test), 2)
        )
        assert min(len(validation), len(test)) > 0
        whole = prepared(source, tmp_path, split=SplitSpec(by=by, column=column, size=0.2), steps=SCALED)
        held_out = set(parts(whole)[1]["who"])
        assert held_out == set(test["who"]), "a key that is held out stays so, however the rest is split"
    else:
        # Of all rows, not of those that are left. The shares of small classes are rounded down.
        assert (len(validation), len(test)) == ((25, 20) if by != "stratify" else (24, 19))
    if by == "time":
        assert test["day"].min() > validation["day"].max() > validation["day"].min() > train["day"].max()


def test_a_preprocessor_is_fitted_on_the_training_part(source, tmp_path):
    said: list[str] = []
    data = prepared(source, tmp_path, said.append, steps=SCALED)
    train, validation = parts(data)
    assert train["x"].mean() == pytest.approx(0.0, abs=1e-9)
    assert train["x"].std(ddof=0) == pytest.approx(1.0)
    assert abs(validation["x"].mean()) > 1e-3, "by the mean of the training part, not by its own"
    manifest = json.loads((Path(data.folder) / "_manifest.json").read_text())
    assert manifest["columns"]["x"] == "double"
    assert manifest["train_rows"] == 80
    assert manifest["digest"] == data.digest
    assert manifest["code_version"].startswith("trainlib ")
    assert manifest["source"] == str(source)
    assert manifest["split"] == "shuffle, 20% for validation, seed 0"
    assert "100 rows, all with a label" in said
    assert any(text.startswith("fitting StandardScaler(x)") for text in said)
    again = prepared(source, tmp_path / "elsewhere", steps=SCALED)
    assert again.folder != data.folder
    assert again.digest == data.digest, "the same inputs give the same bytes"


def test_a_preprocessor_of_ones_own(source, tmp_path):
    from ray.data.preprocessors import MinMaxScaler

    spec = PreprocessSpec(source=str(source), target="label", storage_path=str(tmp_path / "prepared"))
    data = run_preprocessing(plan_preprocessing(spec, MinMaxScaler(columns=["x"])), print)
    assert parts(data)[0]["x"].max() == 1.0
    assert plan_preprocessing(spec, MinMaxScaler(columns=["x"])).folder == data.folder
    assert plan_preprocessing(spec, MinMaxScaler(columns=["day"])).folder != data.folder
    assert plan_preprocessing(spec).folder != data.folder
    by_hand = PreprocessSpec(source=str(source), target="label", steps=SCALED)
    by_form = PreprocessSpec.model_validate_json(by_hand.model_dump_json())
    assert plan_preprocessing(by_hand).key == plan_preprocessing(by_form).key


def test_the_same_is_never_prepared_twice(source, tmp_path, driver):
    script = """
        import sys
        from trainlib._data.preprocess import plan_preprocessing, run_preprocessing
        from trainlib._data.spec import PreprocessSpec, StepSpec

        def say(text):
            print(text, flush=True)

        steps = [StepSpec(name="StandardScaler", columns=["x"])]
        spec = PreprocessSpec(source=sys.argv[1], target="label", storage_path=sys.argv[2], steps=steps)
        say(f"in {run_preprocessing(plan_preprocessing(spec), say).folder}")
    """
    others: list[Driver] = []
    said: list[str] = []

    def start_another_one_in_the_midst_of_it(text: str) -> None:
        said.append(text)
        if not others:
            others.append(driver(script, str(source), str(tmp_path / "prepared")))
            others[0].wait_for(lambda: "another process is preprocessing the same data: waiting" in others[0].output)

    data = prepared(source, tmp_path, start_another_one_in_the_midst_of_it, steps=SCALED)
    (other,) = others
    assert other.wait() == 0, other.output
    assert "already preprocessed" in other.output, "of two processes at once, one did it and the other waited"
    assert "writing" not in other.output
    assert "writing train" in said
    assert f"in {data.folder}" in other.output
    said.clear()
    assert prepared(source, tmp_path, said.append, steps=SCALED) == data
    assert said == [f"already preprocessed: {data.folder}"]

    source.write_text(source.read_text().replace("p3", "p4"))
    changed = prepared(source, tmp_path, steps=SCALED)
    assert changed.folder != data.folder, "other bytes"
    assert prepared(source, tmp_path, split=SplitSpec(seed=1), steps=SCALED).folder != changed.folder


def test_the_rows_of_a_file_keep_their_order(tmp_path):
    """What was worked on in batches has as many pieces, and a process of several threads must not write them as they come."""

    def with_threads(batch: pa.Table) -> pa.Table:
        pa.set_cpu_count(8)
        return batch

    cluster.connect()
    rows = ray.data.from_arrow(pa.table({"id": range(100_000)}))
    write_parquet(rows.map_batches(with_threads, batch_format="pyarrow", batch_size=100), str(tmp_path / "rows"))
    (file,) = (tmp_path / "rows").iterdir()
    assert pd.read_parquet(file)["id"].tolist() == list(range(100_000))


def test_half_of_an_output_is_never_taken_for_the_whole(source, tmp_path):
    data = prepared(source, tmp_path)
    manifest = Path(data.folder, "_manifest.json")
    manifest.unlink()  # as a process leaves it that was killed before its end
    Path(data.folder, "train", "part-000000.parquet").write_bytes(b"half")
    half = Path(f"{data.folder}.part-1234", "train")
    half.mkdir(parents=True)
    (half / "part-000009.parquet").write_bytes(b"half")
    again = prepared(source, tmp_path)
    assert again == data
    assert manifest.exists()
    assert len(parts(again)[0]) == 80
    assert not half.parent.exists()


def test_a_store_that_is_no_disk_keeps_it_too(source, tmp_path):
    """Any fsspec scheme that the workers reach; here a folder under another name."""
    root = f"local://{tmp_path}/store"
    assert storage.local_path(root) is None
    data = prepared(source, tmp_path, storage_path=root)
    assert data.train.startswith(data.folder)
    assert data.folder.startswith(root)
    said: list[str] = []
    assert prepared(source, tmp_path, said.append, storage_path=root) == data
    assert said == [f"already preprocessed: {data.folder}"]


def refused(match: str, source, tmp_path: Path, error: type[Exception] = DataError, **spec) -> None:
    with pytest.raises(error, match=match):
        prepared(source, tmp_path, **spec)
    assert not (tmp_path / "prepared").exists() or not list((tmp_path / "prepared").glob("*/_manifest.json"))


def test_bad_input_is_named(source, tmp_path):
    refused("there is no data at", tmp_path / "nothing.csv", tmp_path)
    refused(r"target names the column 'income', but .*people\.csv has only: x, kind", source, tmp_path, target="income")
    refused("split names the column 'age'", source, tmp_path, split=SplitSpec(by="time", column="age"))
    refused(
        "StandardScaler needs the column 'age'",
        source,
        tmp_path,
        steps=[StepSpec(name="StandardScaler", columns=["age"])],
    )
    refused(
        r"StandardScaler needs numbers, but column 'kind' of .* is of type string",
        source,
        tmp_path,
        steps=[StepSpec(name="StandardScaler", columns=["kind"])],
    )
    refused(
        "splitting by time needs times or numbers, but column 'who' .* is of type string",
        source,
        tmp_path,
        split=SplitSpec(by="time", column="who"),
    )
    refused("stratify needs a column", source, tmp_path, target=None, split=SplitSpec(by="stratify"))
    for size in (0.0, 1.0):
        with pytest.raises(ValidationError, match="the share for validation, between 0 and 1"):
            SplitSpec(size=size)
    with pytest.raises(ValidationError, match="splitting by time needs a column"):
        SplitSpec(by="time")
    with pytest.raises(ValueError, match="test_size is 1"):
        SplitSpec(test_size=1)
    with pytest.raises(ValueError, match=r"size is 0\.2 and test_size is 0\.8, which leaves no rows for training"):
        SplitSpec(test_size=0.8)
    with pytest.raises(ValidationError, match=r"is none of Ray Data's preprocessors: .*StandardScaler"):
        StepSpec(name="Scaler")


def test_a_key_that_is_missing_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    people(20).assign(who=[7.0] * 9 + [None] + [8.0] * 10).to_csv(path, index=False)
    split = SplitSpec(by="hash", column="who")
    refused(r"1 of 20 rows of .* have no value in column 'who'; the first is row 10", path, tmp_path, split=split)


def test_labels_that_teach_nothing_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    table = people(20)
    table.assign(label=[1.0] * 7 + [None] * 2 + [2.0] * 11).to_csv(path, index=False)
    refused(r"2 of 20 rows of .*t\.csv have no label in column 'label'; the first is row 8", path, tmp_path)
    table.assign(label=5).to_csv(path, index=False)
    refused(r"column 'label' of .*t\.csv is 5 in all 20 rows", path, tmp_path)
    people(2).to_csv(path, index=False)
    refused("leaves no rows of .* for validation", path, tmp_path, split=SplitSpec(by="hash", column="day", size=1e-9))


def test_the_task_shows_its_progress_in_prefect(source, tmp_path):
    from prefect import flow
    from prefect.artifacts import Artifact
    from prefect.runtime import flow_run

    from trainlib.flows import _embedded as embedded
    from trainlib.tasks import preprocess

    embedded.start()
    embedded.wait()
    said: list[str] = []
    runs = set()

    def say(text: str) -> None:
        said.append(text)
        runs.add(flow_run.id)

    @flow
    def mine() -> PreprocessedData:
        return preprocess(PreprocessSpec(source=str(source), storage_path=str(tmp_path / "prepared")), say=say)

    data = mine()
    assert any(text.startswith("writing train") for text in said), said
    assert len(runs) == 1, "each line of progress is said within the run"
    assert data.target is None
    assert said[-1].startswith("preprocessed 80 rows for training, 20 for validation")
    artifact = Artifact.get("preprocessed-data")
    assert artifact is not None
    assert "80" in str(artifact.data)
