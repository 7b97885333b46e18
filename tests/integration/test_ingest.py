"""Datasets reach the workers: split or whole, epoch after epoch, in every way of reading, and again after a loss."""

from __future__ import annotations

import functools
import http.server
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import ray
from ray.util import placement_group, placement_group_table, remove_placement_group

from tests.integration.leftovers import assert_nothing_left_behind
from trainlib import (
    Checkpoint,
    DataConfig,
    DataParallelTrainer,
    FailureConfig,
    RunConfig,
    ScalingConfig,
    TrainingFailedError,
    session,
)
from trainlib._data.ingest import Ingest
from trainlib._execution import cluster
from trainlib.errors import DataError, OutOfStepError
from trainlib.torch import TorchTrainer

TWO = ScalingConfig(num_workers=2)


def table(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"id": np.arange(rows), "x": np.arange(rows, dtype="float64")})


def ids_of_two_epochs(config: dict) -> dict:
    """What each rank reads of every dataset, twice."""
    read = {}
    for name in config["datasets"]:
        shard = session.get_dataset_shard(name)
        read[name] = [sorted(int(row["id"]) for row in shard.iter_rows()) for _ in range(2)]
    session.report({"done": 1})
    return read


def test_everything_that_can_be_a_dataset_is_one(tmp_path):
    import datasets

    table(7).to_csv(tmp_path / "a.csv.gz", index=False)
    table(7).assign(id=range(7, 14)).to_csv(tmp_path / "b.csv.gz", index=False)
    table(5).to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    given = {
        "train": str(tmp_path / "*.csv.gz"),
        "lines": tmp_path / "t.jsonl",
        "frame": table(6),
        "hugging": datasets.Dataset.from_pandas(table(4)),
        "ray": lambda: ray.data.range(3),
        "made": lambda: table(8),
    }
    trainer = DataParallelTrainer(
        ids_of_two_epochs, train_loop_config={"datasets": list(given)}, scaling_config=TWO, datasets=given
    )
    first, second = (result := trainer.fit()).returned
    for epoch in range(2):
        assert sorted(first["train"][epoch] + second["train"][epoch]) == list(range(14))
        assert len(first["train"][epoch]) == len(second["train"][epoch]) == 7
        for name, rows in {"lines": 5, "frame": 6, "hugging": 4, "ray": 3, "made": 8}.items():
            assert first[name][epoch] == second[name][epoch] == list(range(rows)), "whole on every worker"
    assert result.rows["train"] == [[7, 7], [7, 7]]
    assert result.rows["lines"] == [[5, 5], [5, 5]]


def test_the_run_lists_its_datasets_and_the_rows_that_were_read(tmp_path, registry, curve):
    table(11).to_parquet(tmp_path / "t.parquet")
    trainer = DataParallelTrainer(
        ids_of_two_epochs,
        train_loop_config={"datasets": ["train", "validation"]},
        scaling_config=TWO,
        datasets={"train": str(tmp_path), "validation": table(3)},
    )
    result = trainer.fit()
    inputs = {each.dataset.name: each.dataset for each in registry.get_run(result.run_id).inputs.dataset_inputs}
    assert inputs.keys() == {"train", "validation"}
    assert str(tmp_path) in inputs["train"].source
    assert '"num_rows": 11' in inputs["train"].profile
    assert '"name": "x"' in inputs["train"].schema
    assert len(inputs["train"].digest) == 16
    assert curve(result.run_id, "system/data/train/rows")[0] == (1, 10.0), (
        "of 11 rows, one is left out for equal shares"
    )
    assert curve(result.run_id, "system/data/train/rows_rank_1")[0] == (1, 5.0)
    assert curve(result.run_id, "system/data/validation/rows")[0] == (1, 3.0)
    assert "system/data/train/rows" not in result.metrics_dataframe


def test_a_config_says_what_is_split(tmp_path):
    trainer = DataParallelTrainer(
        ids_of_two_epochs,
        train_loop_config={"datasets": ["train", "validation"]},
        scaling_config=TWO,
        datasets={"train": table(4), "validation": table(6)},
        dataset_config=DataConfig(datasets_to_split=["validation"]),
    )
    first, second = trainer.fit().returned
    assert first["train"][0] == second["train"][0] == [0, 1, 2, 3]
    assert sorted(first["validation"][0] + second["validation"][0]) == list(range(6))


class Halves(DataConfig):
    """Gives each worker one half of the ids, and a dataset that the trainer was not given."""

    def __init__(self, column: str) -> None:
        super().__init__()
        self.column = column

    @staticmethod
    def default_ingest_options():
        options = DataConfig.default_ingest_options()
        options.preserve_order = True
        return options

    def configure(self, datasets, world_size, worker_handles, worker_node_ids, **kwargs):
        assert len(worker_handles) == len(worker_node_ids) == world_size
        assert datasets["train"].context.execution_options.preserve_order
        column, per_worker = self.column, datasets["train"].count() // world_size
        whole = super().configure({"whole": datasets["train"]}, world_size, worker_handles, worker_node_ids)
        for rank, shards in enumerate(whole):
            low = rank * per_worker
            shards["train"] = datasets["train"].filter(lambda row, low=low: low <= row[column] < low + per_worker)
        return whole


def asks_for_more(config):
    assert session.get_dataset_shard("missing") is None
    ids = {name: [row["id"] for row in session.get_dataset_shard(name).iter_rows()] for name in ("train", "whole")}
    session.report({"rows": len(ids["train"])})
    return ids


def test_a_config_of_ones_own_hands_out_the_data(capfd):
    def trainer(config):
        return DataParallelTrainer(
            asks_for_more, scaling_config=TWO, datasets={"train": table(6)}, dataset_config=config
        )

    first, second = trainer(Halves("id")).fit().returned
    assert (first["train"], second["train"]) == ([0, 1, 2], [3, 4, 5])
    assert first["whole"] == second["whole"] == list(range(6))
    assert capfd.readouterr().err.count("get_dataset_shard('missing') returns None") == 1

    class Short(DataConfig):
        def configure(self, *args, **kwargs):
            return [{"train": "rows"}]

    with pytest.raises(
        TrainingFailedError, match=r"Short\.configure\(\) has to return a list of 2 dicts of iterators, one for each "
    ):
        trainer(Short()).fit()


def read_in_every_way(config: dict) -> list[float]:
    """The sum of x over an epoch, by each way of reading."""
    import torch

    shard = session.get_dataset_shard("train")
    ways = {
        "iter_batches": lambda: sum(float(batch["x"].sum()) for batch in shard.iter_batches(batch_size=4)),
        "pandas": lambda: sum(batch["x"].sum() for batch in shard.iter_batches(batch_size=4, batch_format="pandas")),
        "iter_torch_batches": lambda: sum(
            batch["x"].sum().item() for batch in shard.iter_torch_batches(batch_size=4, dtypes=torch.float32)
        ),
        "to_torch": lambda: sum(
            features.sum().item()
            for features, _ in shard.to_torch(label_column="id", feature_columns=["x"], batch_size=4)
        ),
        "iter_rows": lambda: sum(row["x"] for row in shard.iter_rows()),
        "materialize": lambda: shard.materialize().sum("x"),
        "shuffled": lambda: sum(
            float(batch["x"].sum()) for batch in shard.iter_batches(batch_size=4, local_shuffle_buffer_size=8)
        ),
    }
    sums = [float(way()) for way in ways.values()]
    session.report({"done": 1})
    return sums


def test_every_way_of_reading_gives_the_same_rows():
    trainer = TorchTrainer(read_in_every_way, scaling_config=TWO, datasets={"train": table(20)})
    first, second = trainer.fit().returned
    assert [one + other for one, other in zip(first, second, strict=True)] == [float(sum(range(20)))] * 7


def read_with_tensorflow(config: dict) -> list[float]:
    shard = session.get_dataset_shard("train")
    batches = sum(float(batch["x"].numpy().sum()) for batch in shard.iter_tf_batches(batch_size=4))
    dataset = shard.to_tf(feature_columns="x", label_columns="id", batch_size=4)
    sums = [float(sum(features.numpy().sum() for features, _ in dataset)) for _ in range(2)]
    session.report({"done": 1})
    return [batches, *sums]


def test_tensorflow_reads_shards():
    from trainlib.tensorflow import TensorflowTrainer

    trainer = TensorflowTrainer(read_with_tensorflow, scaling_config=TWO, datasets={"train": table(20)})
    first, second = trainer.fit().returned
    assert [one + other for one, other in zip(first, second, strict=True)] == [float(sum(range(20)))] * 3


def save_scaled(config: dict) -> list[float]:
    rows = {name: [row["x"] for row in session.get_dataset_shard(name).iter_rows()] for name in ("train", "validation")}
    folder = Path(config["folder"])
    (folder / "weights").mkdir(exist_ok=True)
    session.report({"n": 1}, checkpoint=Checkpoint.from_dict({"n": 1}))
    session.report({"n": 2}, checkpoint=Checkpoint.from_directory(folder / "weights"))
    return rows


def test_a_preprocessor_is_fitted_on_train_and_goes_with_every_checkpoint(tmp_path):
    from ray.data.preprocessors import StandardScaler

    scaler = StandardScaler(columns=["x"])
    trainer = DataParallelTrainer(
        save_scaled,
        train_loop_config={"folder": str(tmp_path)},
        scaling_config=ScalingConfig(num_workers=1),
        datasets={"train": table(5), "validation": table(2).assign(x=[2.0, 4.0])},
        preprocessor=scaler,
    )
    result = trainer.fit()
    deviation = np.std(range(5))
    (rows,) = result.returned
    assert rows["validation"] == pytest.approx([0.0, 2 / deviation]), "by the mean and deviation of train"
    assert scaler.fit_status().value == "NOT_FITTED", "the user's own is as it was"
    by_directory, by_dict = result.checkpoint, result.best_checkpoints[0][0]
    assert by_directory.path != by_dict.path
    for checkpoint in (by_directory, by_dict):
        applied = checkpoint.get_preprocessor().transform_batch(pd.DataFrame({"x": [2.0, 4.0]}))
        assert list(applied["x"]) == pytest.approx([0.0, 2 / deviation])
    assert by_dict.to_dict()["_preprocessor"] is not None
    assert Checkpoint.from_dict({"a": 1}).get_preprocessor() is None


def die_in_the_second_epoch(config: dict) -> list[list[int]]:
    import torch.distributed as dist

    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
    shard = session.get_dataset_shard("train")
    mark = Path(config["mark"])
    read = []
    for epoch in range(start, 3):
        ids = []
        for row in shard.iter_rows():
            ids.append(int(row["id"]))
            if epoch == 1 and len(ids) == 5 and session.get_world_rank() == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        read.append(ids)
        dist.barrier()
        session.report({"epoch": epoch}, checkpoint=Checkpoint.from_dict({"epoch": epoch}))
    return read


def test_a_retry_reads_the_interrupted_epoch_again_from_its_start(tmp_path, curve):
    trainer = TorchTrainer(
        die_in_the_second_epoch,
        train_loop_config={"mark": str(tmp_path / "died")},
        scaling_config=TWO,
        datasets={"train": table(40)},
        run_config=RunConfig(failure_config=FailureConfig(max_failures=1)),
    )
    result = trainer.fit()
    assert result.attempts == 2
    first, second = result.returned
    assert len(first) == 2, "the epochs from the checkpoint on"
    for one, other in zip(first, second, strict=True):
        assert sorted(one + other) == list(range(40)), "no row is dropped or doubled"
    assert curve(result.run_id, "system/data/train/rows") == [(epoch, 40.0) for epoch in (1, 2, 3)]
    assert_nothing_left_behind()


def read_once_or_twice(config: dict) -> None:
    shard = session.get_dataset_shard("train")
    for _ in range(2 - session.get_world_rank()):
        list(shard.iter_rows())


def test_a_rank_that_reads_more_epochs_than_the_others_is_told_so():
    trainer = DataParallelTrainer(read_once_or_twice, scaling_config=TWO, datasets={"train": table(10)})
    with pytest.raises(TrainingFailedError, match=r"rank 0.*rank\(s\) 1 returned, but this one goes on") as failed:
        trainer.fit()
    assert isinstance(failed.value.__cause__, OutOfStepError)
    assert_nothing_left_behind()


ON_TWO_CPUS = """
import ray
from trainlib import DataParallelTrainer, ScalingConfig, TrainingFailedError, session

def train_func():
    shard, validation = session.get_dataset_shard("train"), session.get_dataset_shard("validation")
    for epoch in range(2):
        rows = 0
        for batch in shard.iter_batches(batch_size=10):
            rows += len(batch["data"])
            if rows == 50:
                seen = sum(len(batch["id"]) for batch in validation.iter_batches())
        session.report(dict(rows=rows, seen=seen))

CONNECT
# 200 MiB
train = ray.data.range_tensor(200, shape=(128, 1024), override_num_blocks=20).map_batches(lambda batch: batch)
trainer = DataParallelTrainer(
    train_func,
    scaling_config=ScalingConfig(num_workers=2, resources_per_worker=EACH),
    datasets=dict(train=train, validation=ray.data.range(1000).map_batches(lambda batch: batch)),
)
try:
    print("rows", trainer.fit().metrics["rows"], flush=True)
except TrainingFailedError as error:
    print("refused", error, flush=True)
"""


def test_two_workers_and_more_data_than_memory_share_a_machine_with_two_cpus(driver):
    """With a Ray as ``ray.data`` starts it, which leaves no CPU for reading, and validation in the midst of an epoch."""
    start = (
        "ray.init(address='local', num_cpus=2, object_store_memory=120 * 1024**2, log_to_driver=False, "
        "include_dashboard=False)"
    )
    script = driver(ON_TWO_CPUS.replace("CONNECT", start).replace("EACH", "None"), own_ray=True)
    assert script.wait() == 0, script.output
    assert "rows 100" in script.output


def test_a_training_waits_for_a_cpu_to_read_with_while_others_hold_all(tmp_path, monkeypatch):
    """It gives its own room back meanwhile, so that two trainings do not wait for each other."""
    cluster.connect()
    table(10).to_csv(tmp_path / "t.csv", index=False)
    others = placement_group([{"CPU": 1}] * (int(ray.cluster_resources()["CPU"]) - 2))
    ray.get(others.ready())
    lacks_cpu, held = Ingest.lacks_cpu, []

    def end_the_others(ingest: Ingest, asked: float = 0.0) -> str | None:
        if asked and not held:
            groups = placement_group_table().values()
            held.append([len(group["bundles"]) for group in groups if group["state"] == "CREATED"])
            remove_placement_group(others)
        return lacks_cpu(ingest, asked)

    monkeypatch.setattr(Ingest, "lacks_cpu", end_the_others)
    trainer = DataParallelTrainer(
        ids_of_two_epochs,
        train_loop_config={"datasets": ["train"]},
        scaling_config=TWO,
        datasets={"train": str(tmp_path / "t.csv")},
    )
    assert trainer.fit().metrics["done"] == 1
    assert held == [[len(others.bundle_specs)]], "it waited, and held nothing itself"


def test_a_cluster_with_too_few_cpus_for_both_is_told_at_once(driver):
    """The session's Ray is a cluster to the script, which has not started it."""
    cluster.connect()
    cpus = ray.cluster_resources()["CPU"]
    script = driver(
        ON_TWO_CPUS.replace("CONNECT", "from trainlib._execution import cluster; cluster.connect()")
        .replace("EACH", f"dict(CPU={cpus / 2})")
        .replace("TorchTrainer(", "DataParallelTrainer(")
        .replace("import ScalingConfig", "import DataParallelTrainer, ScalingConfig")
    )
    assert script.wait() == 0, script.output
    taken = f"2 worker(s) take {cpus:g} of the cluster's {cpus:g} CPUs"
    assert f"{taken}, and reading 'train' and 'validation' at the same time needs" in script.output


def nothing(config: dict) -> None:
    """Reads nothing."""


def read_train(config: dict) -> None:
    for _ in session.get_dataset_shard(config.get("name", "train")).iter_batches():
        pass


def refused(match: str, function=read_train, error: type[Exception] = DataError, workers: int = 2, **arguments) -> None:
    with pytest.raises(error, match=match):
        DataParallelTrainer(function, scaling_config=ScalingConfig(num_workers=workers), **arguments).fit()


def test_data_that_cannot_be_trained_on_are_refused(tmp_path):
    from ray.data.preprocessors import StandardScaler

    table(3).to_csv(tmp_path / "t.csv", index=False)
    csv = str(tmp_path / "t.csv")
    refused(r"there is no data at", datasets={"train": str(tmp_path / "nothing.csv")})
    refused(r"has only 3 row\(s\) for 4 workers", workers=4, datasets={"train": csv})
    refused("a DataFrame with no rows", datasets={"train": table(0)})
    refused("is a Series", error=TypeError, datasets={"train": table(3)["x"]})
    refused(
        r"StandardScaler needs the column 'age', but the dataset 'train' .* has only: id, x",
        datasets={"train": csv},
        preprocessor=StandardScaler(columns=["age"]),
    )
    refused("datasets\\['train'\\] is a int", error=TypeError, datasets={"train": 3})
    refused("datasets is a list", error=TypeError, datasets=[csv])
    refused("preprocessor is a str", error=TypeError, datasets={"train": csv}, preprocessor="scale")
    refused("but no datasets to apply it to", error=ValueError, preprocessor=StandardScaler(columns=["x"]))
    refused(
        "datasets_to_split names 'test', but the datasets are 'train'",
        error=ValueError,
        datasets={"train": csv},
        dataset_config=DataConfig(datasets_to_split=["test"]),
    )


def leave_epochs_early(config: dict) -> None:
    shard = session.get_dataset_shard("train")
    for _ in range(3 - session.get_world_rank()):
        for _ in shard.iter_batches(batch_size=2):
            break


def test_loops_that_are_left_early_make_no_rank_wait_for_ever():
    trainer = DataParallelTrainer(leave_epochs_early, scaling_config=TWO, datasets={"train": table(1000)})
    with pytest.raises(TrainingFailedError, match=r"rank\(s\) 1 returned, but this one goes on reading"):
        trainer.fit()
    assert_nothing_left_behind()


def count_rows(config: dict) -> int:
    rows = sum(1 for _ in session.get_dataset_shard("train").iter_rows())
    session.report({"rows": rows})
    return rows


def test_shares_need_not_be_equal_and_the_users_dataset_stays_as_it_was():
    cluster.connect()
    dataset = ray.data.from_pandas(table(7))
    limits = dataset.context.execution_options.resource_limits
    trainer = DataParallelTrainer(
        count_rows, scaling_config=TWO, datasets={"train": dataset}, dataset_config=DataConfig(equal=False)
    )
    result = trainer.fit()
    assert sum(result.returned) == 7, "none is left out"
    assert sorted(result.returned) == [3, 4], "also if they are in one block"
    assert dataset.context.execution_options.resource_limits == limits


def test_files_behind_another_scheme_are_read_by_the_workers(tmp_path):
    table(6).to_csv(tmp_path / "t.csv", index=False)
    lines = pd.DataFrame({"zip": ["01234", "02345"], "x": [1, 2]})
    lines.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    handler = functools.partial(QuietHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            trainer = DataParallelTrainer(
                read_zips, scaling_config=TWO, datasets={"train": f"{address}/t.csv?v=1", "lines": f"{address}/t.jsonl"}
            )
            result = trainer.fit()
        finally:
            server.shutdown()
    assert [rows for rows, _ in result.returned] == [3, 3]
    assert [zips for _, zips in result.returned] == [["01234", "02345"]] * 2, "texts stay texts"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def read_zips(config: dict) -> tuple[int, list[str]]:
    rows = sum(1 for _ in session.get_dataset_shard("train").iter_rows())
    session.report({"done": 1})
    return rows, [row["zip"] for row in session.get_dataset_shard("lines").iter_rows()]


CONTINUED = """
import json, os, sys, time
from pathlib import Path
import pandas as pd
from ray.data.preprocessors import StandardScaler
from trainlib import Checkpoint, DataParallelTrainer, RunConfig, ScalingConfig, session

def train_func(config):
    checkpoint = session.get_checkpoint()
    rows = [row["x"] for row in session.get_dataset_shard("train").iter_rows()]
    session.report({"n": 1}, checkpoint=Checkpoint.from_dict({"rows": rows}))
    if checkpoint is None:
        while not (Path(session.get_trial_dir()) / "checkpoints" / "checkpoint_000000").exists():  # until it is kept
            time.sleep(0.05)
        os.kill(int(Path(config["to_kill"]).read_text()), 9)
    return checkpoint.to_dict()["rows"] == rows

name, to_kill = sys.argv[1:]
trainer = DataParallelTrainer(
    train_func,
    train_loop_config={"to_kill": to_kill},
    scaling_config=ScalingConfig(num_workers=1),
    datasets={"train": pd.DataFrame({"x": [1.0, 2.0, 6.0]})},
    preprocessor=StandardScaler(columns=["x"]),
    run_config=RunConfig(name=name),
)
print(json.dumps({"same": trainer.fit().returned}))
"""


def test_a_killed_process_goes_on_with_the_preprocessor_that_it_had(driver, run_here, tmp_path):
    to_kill = tmp_path / "to_kill"
    killed = driver("import os; open('to_kill', 'w').write(str(os.getpid()))" + CONTINUED, "continued", str(to_kill))
    assert killed.wait() == -signal.SIGKILL
    assert "fitting" in killed.output
    to_kill.unlink()  # now it is the session's process, which nobody should kill
    assert run_here(CONTINUED, "continued", str(to_kill)) == {"same": [True]}
    assert "continued" in run_here.output
    assert "fitting" not in run_here.output


def test_data_that_turn_out_broken_while_training_are_named(tmp_path, monkeypatch):
    from trainlib._data import sources

    monkeypatch.setattr(sources, "READ_WHOLE", 0)  # as if it were too large to be read twice
    path = tmp_path / "ragged.csv"
    path.write_text("x,y\n" + "1,2\n" * 400_000 + "1,2,3\n")
    with pytest.raises(TrainingFailedError, match=r"the dataset 'train' cannot be read .*ragged\.csv") as failed:
        DataParallelTrainer(read_train, scaling_config=TWO, datasets={"train": str(path)}).fit()
    assert "Row #400002: Expected 2 columns, got 3" in str(failed.value)
    with pytest.raises(TrainingFailedError, match=r"the dataset 'other' cannot be read .*ragged\.csv"):
        DataParallelTrainer(
            read_train,
            train_loop_config={"name": "other"},
            scaling_config=TWO,
            datasets={"train": table(4), "other": str(path)},
        ).fit()

    def few():
        return ray.data.range(100).filter(lambda row: row["id"] < 1)

    with pytest.raises(TrainingFailedError, match="the dataset 'train' has no rows for this worker"):
        DataParallelTrainer(read_train, scaling_config=TWO, datasets={"train": few}).fit()
    assert_nothing_left_behind()
