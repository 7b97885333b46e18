"""What is known of a dataset before anything starts."""

from __future__ import annotations

import datasets
import pandas as pd
import pytest

from trainlib import DataParallelTrainer, ScalingConfig
from trainlib._data.config import DataConfig
from trainlib.errors import DataError

ROW = pd.DataFrame({"x": [1.0]})


def trainer(given: object, **more: object) -> DataParallelTrainer:
    two = ScalingConfig(num_workers=2)
    return DataParallelTrainer(lambda: None, datasets={"train": given}, scaling_config=two, **more)


@pytest.mark.parametrize(
    ("given", "kind"), [(ROW, "a pandas.DataFrame"), (datasets.Dataset.from_pandas(ROW), "a datasets.Dataset")]
)
def test_fewer_rows_than_workers_are_an_error_before_anything_starts(given, kind):
    with pytest.raises(DataError, match=rf"the dataset 'train' \({kind}\) has only 1 row\(s\) for 2 workers"):
        trainer(given).inspect_data()
    trainer(given, dataset_config=DataConfig(datasets_to_split=[])).inspect_data()
