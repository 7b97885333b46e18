"""Guide sections: distributed data ingest, the note about datasets, training on a large dataset."""

import pandas as pd
import pytest

from trainlib._execution import cluster


@pytest.fixture
def csv(tmp_path):
    cluster.connect()  # or `ray.data` would connect to whatever Ray it finds on the machine
    path = tmp_path / "table.csv"
    pd.DataFrame({"x": [float(i) for i in range(100)], "y": [i % 2 for i in range(100)]}).to_csv(path, index=False)
    return str(path)


def test_train_is_split_among_eight_workers_and_validation_is_whole(run_example, csv):
    result = run_example("data_ingest", CSV=csv).result
    assert result.returned == [[10, 20]] * 8
    assert result.rows == {"train": [[10] * 8], "validation": [[20] * 8]}


def test_a_large_dataset_becomes_torch_batches_of_eight_workers(run_example, csv):
    ran = run_example("sgd_large_dataset", CSV=csv)
    assert [type(model).__name__ for model in ran.names["result"]] == ["Linear"] * 8
    assert ran.result.metrics["rows"] == 10
    assert ran.result.rows == {"train": [[10] * 8]}


def test_each_worker_trains_on_its_shard(run_example):
    """Guide 003 includes ``torch_trainer.py``."""
    ran = run_example("torch_trainer")
    assert ran.result.metrics_dataframe["rows"].tolist() == [16, 16]
    assert ran.result.checkpoint.to_dict()["epoch"] == 1
    assert ran.lines[-1] == str(ran.result.metrics["loss"])
