"""A category has the same code on all ranks and in all datasets, whatever each of them has seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from xgboost import collective
from xgboost.tracker import RabitTracker

from tests.unit.boosting.two_ranks import alone, by_two_ranks
from trainlib._boosting.categories import categories_in, encoded, united
from trainlib._boosting.columns import with_equal_columns
from trainlib._boosting.exchange import ExchangeBytes
from trainlib._boosting.table import LabelledTable
from trainlib._serving.checkpoints import loader_of
from trainlib.errors import DataError
from trainlib.xgboost import XGBoostCheckpoint
from trainlib.xgboost._boost import _matrices, _with_equal_categories

RNG = np.random.default_rng(0)
CITIES = RNG.choice(["Ulm", "Bonn", "Kiel", "Rom"], size=400)
SHARES = (np.isin(CITIES, ["Ulm", "Rom"]), np.isin(CITIES, ["Bonn", "Kiel"]))
"""No city is in both."""
LABELS = np.isin(CITIES, ["Ulm", "Kiel"]).astype("float32")
PARAMS = {"objective": "binary:logistic", "nthread": 1}


def table_of(cities, dataset: str = "train") -> LabelledTable:
    """In two chunks, as the blocks of a dataset are, of which each has its own dictionary."""
    half = len(cities) // 2
    column = pa.chunked_array([pa.array(part).dictionary_encode() for part in (cities[:half], cities[half:])])
    labels = np.isin(cities, ["Ulm", "Kiel"]).astype("float32")
    return LabelledTable(dataset, pa.table({"city": column}), labels, {})


def with_zeros(table: LabelledTable, place: int) -> LabelledTable:
    return replace(table, features=table.features.add_column(place, "zero", [np.zeros(table.rows)]))


def test_all_datasets_have_the_sorted_union_of_all_categories():
    features = {
        "train": pa.table({"city": pa.array(["Ulm", None, "Bonn"]).dictionary_encode(), "a": [1, 2, 3]}),
        "valid": pa.table({"city": pa.array(["Kiel"], pa.large_string()).dictionary_encode(), "a": [4]}),
    }
    mine = categories_in(features.values())
    assert {name: sorted(values) for name, values in mine.items()} == {"city": ["Bonn", "Kiel", "Ulm"]}
    everyones = united([mine, {"city": ["Rom", "Ulm"]}])
    assert everyones == {"city": ["Bonn", "Kiel", "Rom", "Ulm"]}
    for table in features.values():
        made = encoded(table, everyones)
        assert made.to_pydict() == table.to_pydict()
        assert made["city"].chunk(0).dictionary.to_pylist() == everyones["city"]
    assert encoded(features["train"], everyones).column_names == ["city", "a"]
    # A share whose values are all missing does not know that they are categories.
    unknown = encoded(pa.table({"city": pa.nulls(2, pa.float32()), "a": [1, 2]}), everyones)
    assert unknown["city"].type == pa.dictionary(pa.int32(), pa.string())
    assert unknown["city"].to_pylist() == [None, None]


def test_ranks_that_have_seen_different_categories_train_the_model_of_one_process():
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1", sortby="task")
    tracker.start()

    def train(rank: int, exchange: ExchangeBytes) -> xgboost.Booster:
        collective.init(**tracker.worker_args(), dmlc_task_id=str(rank))
        read = {"train": table_of(CITIES[SHARES[rank]])}
        if rank == 0:  # what another dataset has counts too
            read["valid"] = table_of(np.array(["Ulm", "Wien"]), "valid")
        else:
            read["valid"] = table_of(np.array(["Kiel", "Kiel"]), "valid")
        # Blocks of a dataset may have their columns in different orders.
        read = {name: with_zeros(table, place=rank) for name, table in read.items()}
        made = _matrices(_with_equal_categories(with_equal_columns(read, exchange), None, exchange), PARAMS, {})
        assert made["train"].feature_names == ["zero", "city"]
        evals = [(each, name) for name, each in made.items()]
        model = xgboost.train(PARAMS, made["train"], 4, evals=evals, verbose_eval=False)
        collective.finalize()
        return model

    trained = by_two_ranks(train)
    tracker.free()
    bare = xgboost.DMatrix(pd.DataFrame({"city": pd.Categorical(CITIES)}), LABELS, enable_categorical=True)
    expected = xgboost.train(PARAMS, bare, 4).predict(bare)
    for model in trained:
        with XGBoostCheckpoint.from_model(model).as_directory() as folder:
            predict = loader_of("xgboost")(folder)
        np.testing.assert_allclose(predict(pd.DataFrame({"city": CITIES, "zero": 0.0})), expected, atol=1e-5)
        assert len(predict(pd.DataFrame({"city": ["Wien"], "zero": 0.0}))) == 1, "which 'valid' of rank 0 has"


def test_a_training_that_goes_on_from_a_model_keeps_its_categories():
    read = _with_equal_categories({"train": table_of(CITIES)}, None, alone)
    model = xgboost.train(PARAMS, _matrices(read, PARAMS, {})["train"], 2)
    fewer = CITIES[CITIES != "Bonn"]
    again = _with_equal_categories({"train": table_of(fewer)}, model, alone)
    assert again["train"].features["city"].chunk(0).dictionary.to_pylist() == ["Bonn", "Kiel", "Rom", "Ulm"]
    more = xgboost.train(PARAMS, _matrices(again, PARAMS, {})["train"], 2, xgb_model=model)
    assert more.num_boosted_rounds() == 4
    new = np.array(["Aachen", "Ulm"])
    with pytest.raises(
        DataError, match="the column 'city' has 'Aachen', which the model of the checkpoint does not know"
    ):
        _with_equal_categories({"train": table_of(new)}, model, alone)
