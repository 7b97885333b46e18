"""Two ranks of LightGBM learn what one would, in whatever order the rows are: their bins are those of all rows."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pytest

from trainlib._boosting.columns import agreed, in_order
from trainlib._boosting.table import LabelledTable
from trainlib.errors import DataError
from trainlib.lightgbm._bins import OF_COMMON_BINS, common_bins
from trainlib.lightgbm._boost import _datasets
from trainlib.lightgbm._config import _network
from trainlib.lightgbm._desk import Desk

RNG = np.random.default_rng(0)
PARAMS = {"objective": "regression", "num_threads": 1, "verbosity": -1}


def by_two_ranks(work: Callable[[int, Callable[[bytes], list[bytes]]], Any]) -> list[Any]:
    """What two ranks return, which are threads with a desk between them."""
    desks = [Desk(), Desk()]
    port = desks[0].open("127.0.0.1", 2, "token", 20)
    try:
        for each in desks:
            each.find("127.0.0.1", port, "token", 20)
        with ThreadPoolExecutor(2) as threads:
            ranks = [
                threads.submit(work, rank, lambda mine, rank=rank: desks[rank].exchange(rank, mine)) for rank in (0, 1)
            ]
            return [each.result(60) for each in ranks]
    finally:
        for each in desks:
            each.leave()


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def table_of(rows: np.ndarray, labels: np.ndarray) -> LabelledTable:
    features = pa.table({f"f{index}": column for index, column in enumerate(rows.T)})
    return LabelledTable("train", features, labels.astype("float32"), {})


def test_rows_that_are_sorted_are_learned_as_well_as_by_one_process():
    rows = np.sort(RNG.normal(size=(2000, 1)), axis=0)
    rows = np.hstack([rows, RNG.normal(size=(2000, 1))])
    held_out = RNG.normal(size=(500, 2))
    labels, expected = (np.sin(3 * each[:, 0]) + each[:, 1] for each in (rows, held_out))
    ports = free_ports(2)
    machines = ",".join(f"127.0.0.1:{port}" for port in ports)

    def train(rank: int, exchange: Callable[[bytes], list[bytes]]) -> lightgbm.Booster:
        share = slice(0, 1000) if rank == 0 else slice(1000, 2000)
        table = table_of(rows[share], labels[share])
        params = {**PARAMS, **OF_COMMON_BINS}
        reference = common_bins(table.features, rank, params, {}, exchange)
        params = {**_network(machines, ports[rank], 60), **params}
        model = lightgbm.train(params, _datasets({"train": table}, params, {}, reference)["train"], 20)
        return model.free_network()

    first, second = by_two_ranks(train)
    alone = lightgbm.train(PARAMS, _datasets({"train": table_of(rows, labels)}, PARAMS, {})["train"], 20)
    errors = [float(np.sqrt(np.mean((each.predict(held_out) - expected) ** 2))) for each in (alone, first, second)]
    assert errors == pytest.approx([errors[0]] * 3, rel=1e-3)


def test_bins_are_the_same_on_all_ranks_and_as_the_parameters_say():
    params = {**PARAMS, "max_bin_by_feature": [8, 16, 300], "bin_construct_sample_cnt": 900, "min_data_in_bin": 1}
    counts = RNG.integers(0, 40, size=2000)
    with_gaps = pa.array([None, *counts[1:1000].tolist()], pa.float64())

    def bins(rank: int, exchange: Callable[[bytes], list[bytes]]) -> tuple[list[int], dict[str, Any]]:
        share = slice(0, 1000) if rank == 0 else slice(1000, 2000)
        columns = {
            "a": np.linspace(0, 1, 2000, dtype="float32")[share],
            "count": with_gaps if rank == 0 else pa.array(counts[share]),
            "city": counts[share] % 30,
        }
        sent: list[bytes] = []
        reference = common_bins(
            pa.table(columns),
            rank,
            params,
            {"categorical_feature": ["city"], "weight": "w"},
            lambda mine: sent.append(mine) or exchange(mine),
        )
        assert len(sent[-1]) < 20_000, "it is the sample that is sent, 450 rows of 20 bytes"
        assert reference.num_data() == 900
        return [reference.feature_num_bin(column) for column in range(3)], reference.get_params()

    first, second = by_two_ranks(bins)
    assert first == second
    assert (first[0][0], first[0][1] <= 16, first[0][2]) == (8, True, 31), "one for each city, and one for others"


def test_features_have_the_places_that_they_have_on_rank_0():
    rows = pa.table({"b": [1.0], "a": [2.0]})
    (table,) = in_order(
        {"train": LabelledTable("train", rows, np.zeros(1), {})}, agreed([["a", "b"], ["b", "a"]])
    ).values()
    assert table.features.to_pydict() == {"a": [2.0], "b": [1.0]}
    for columns, missing in (
        ([["a"], ["a", "b"]], "'b' in the rows of rank 0, but rank 1"),
        ([["a"], []], "'a' in the rows of rank 1, but rank 0"),
    ):
        with pytest.raises(
            DataError, match=f"the dataset 'train' has no column {missing} has it. Give all rows the same"
        ):
            agreed(columns)


def test_a_rank_that_goes_away_is_an_error_of_the_others_and_large_parts_arrive_whole():
    large = [bytes([rank]) * 3_000_000 for rank in (0, 1)]
    assert (
        by_two_ranks(lambda rank, exchange: [*map(len, exchange(large[rank])), exchange(large[rank]) == large])
        == [[3_000_000, 3_000_000, True]] * 2
    )
    desks = [Desk(), Desk()]
    port = desks[0].open("127.0.0.1", 2, "token", 20)
    desks[1].find("127.0.0.1", port, "token", 20)
    desks[1].leave()
    with pytest.raises(ConnectionError, match="another rank has left the training"):
        desks[0].exchange(0, b"")
    desks[0].leave()
