"""Guide sections: distributed data ingest, the note about datasets, training on a large dataset."""

import pandas as pd
import pytest

from trainlib._execution import cluster


@pytest.fixture
def csv(tmp_path):
    cluster.connect()  # or `ray.data` would connect to whatever Ray it finds on the machine
    path = tmp_path / "table.csv"
    pd.DataFrame({"x": range(100), "y": [i % 2 for i in range(100)]}).to_csv(path, index=False)
    return str(path)


def test_train_is_split_and_validation_is_whole(run_example, csv):
    result = run_example("data_ingest", CSV=csv).result
    assert result.returned == [[40, 20], [40, 20]]
    assert result.rows == {"train": [[40, 40]], "validation": [[20, 20]]}


def test_a_shard_becomes_torch_batches(run_example, csv):
    assert run_example("data_shard_to_torch", CSV=csv).result.returned == [45, 45]
