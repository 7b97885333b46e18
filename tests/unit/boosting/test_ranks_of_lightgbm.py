"""Two ranks of LightGBM learn what one would, in whatever order the rows are: their bins are those of all rows."""

from __future__ import annotations

import socket
from typing import Any

import lightgbm
import numpy as np
import pyarrow as pa
import pytest

from tests.unit.boosting.two_ranks import by_two_ranks, connected
from trainlib._boosting.columns import agreed, in_order
from trainlib._boosting.exchange import Exchange, ExchangeBytes
from trainlib._boosting.table import LabelledTable
from trainlib.errors import DataError
from trainlib.lightgbm._bins import OF_COMMON_BINS, common_bins
from trainlib.lightgbm._boost import _datasets
from trainlib.lightgbm._config import _network
from trainlib.lightgbm._objectives import require_share
from trainlib.lightgbm._start import add_to_first_tree, common_start

RNG = np.random.default_rng(0)
PARAMS = {"objective": "regression", "num_threads": 1, "verbosity": -1}


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def table_of(rows: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None) -> LabelledTable:
    features = pa.table({f"f{index}": column for index, column in enumerate(rows.T)})
    columns = {} if weights is None else {"weight": weights.astype("float32")}
    return LabelledTable("train", features, labels.astype("float32"), columns)


ROWS = np.sort(RNG.normal(size=(2000, 1)), axis=0)
ROWS = np.hstack([ROWS, RNG.normal(size=(2000, 1))])
"""The second rank has all that are high."""
HELD_OUT = RNG.normal(size=(500, 2))


def models_of(
    params: dict[str, Any], labels: np.ndarray, weights: np.ndarray | None = None, rounds: int = 20
) -> list[lightgbm.Booster]:
    """What one process learns, and what each of two ranks does."""
    ports = free_ports(2)
    machines = ",".join(f"127.0.0.1:{port}" for port in ports)

    def train(rank: int, exchange: ExchangeBytes) -> lightgbm.Booster:
        share = slice(0, 1000) if rank == 0 else slice(1000, 2000)
        table = table_of(ROWS[share], labels[share], None if weights is None else weights[share])
        common = {**params, **OF_COMMON_BINS}
        reference = common_bins(table.features, rank, common, {}, exchange)
        start = common_start(common, table, exchange)
        common = {**_network(machines, ports[rank], 60), **common}
        dataset = _datasets({"train": table}, common, {}, reference, start=start)["train"]

        def after_round(env: Any) -> None:
            if env.iteration == 0 and start is not None:
                add_to_first_tree(env.model, start)

        return lightgbm.train(common, dataset, rounds, callbacks=[after_round]).free_network()

    alone = _datasets({"train": table_of(ROWS, labels, weights)}, params, {})["train"]
    return [lightgbm.train(params, alone, rounds), *by_two_ranks(train)]


def test_rows_that_are_sorted_are_learned_as_well_as_by_one_process():
    labels, expected = (np.sin(3 * each[:, 0]) + each[:, 1] for each in (ROWS, HELD_OUT))
    errors = [float(np.sqrt(np.mean((model.predict(HELD_OUT) - expected) ** 2))) for model in models_of(PARAMS, labels)]
    assert errors == pytest.approx([errors[0]] * 3, rel=1e-3)


POSITIVE = np.exp(ROWS[:, 0] + ROWS[:, 1] / 2)
FRACTIONS = 1 / (1 + np.exp(-3 * ROWS[:, 0]))
WEIGHTS = np.where(ROWS[:, 0] > 0, 3.0, 0.5)


@pytest.mark.parametrize(
    ("params", "labels", "weights"),
    [
        ({"objective": "poisson"}, POSITIVE, None),
        ({"objective": "gamma"}, POSITIVE, WEIGHTS),
        ({"objective": "tweedie", "boosting": "dart", "drop_seed": 1}, POSITIVE, None),
        ({"objective": "xentropy"}, FRACTIONS, None),
        ({"objective": "cross_entropy_lambda"}, FRACTIONS, WEIGHTS),
        ({"objective": "mse"}, POSITIVE, WEIGHTS),
        ({"objective": "regression", "reg_sqrt": True}, POSITIVE, WEIGHTS),
        ({"objective": "huber"}, POSITIVE, WEIGHTS),
        ({"objective": "fair"}, POSITIVE, WEIGHTS),
        ({"objective": "fair", "reg_sqrt": True}, POSITIVE, WEIGHTS),
        ({"objective": "huber", "reg_sqrt": True}, POSITIVE, WEIGHTS),
        ({"objective": "poisson", "reg_sqrt": True}, POSITIVE, None),
        ({"objective": "poisson", "boost_from_average": False}, POSITIVE, None),
        ({"objective": "poisson", "min_data_in_leaf": 5000}, POSITIVE, None),
    ],
    ids=lambda given: "-".join(map(str, given.values())) if isinstance(given, dict) else "",
)
def test_ranks_with_other_labels_start_from_the_mean_of_all(params, labels, weights):
    # Below the root, LightGBM's ranks guess how many rows a leaf has, from the second derivatives, and may split elsewhere.
    params = {**PARAMS, "num_leaves": 2, **params}
    one, first, second = (model.predict(HELD_OUT) for model in models_of(params, labels, weights, rounds=5))
    np.testing.assert_allclose(first, second)
    np.testing.assert_allclose(first, one, rtol=1e-3)


def test_bins_are_the_same_on_all_ranks_and_as_the_parameters_say():
    params = {**PARAMS, "max_bin_by_feature": [8, 16, 300], "bin_construct_sample_cnt": 900, "min_data_in_bin": 1}
    counts = RNG.integers(0, 40, size=2000)
    with_gaps = pa.array([None, *counts[1:1000].tolist()], pa.float64())

    def bins(rank: int, exchange: ExchangeBytes) -> tuple[list[int], dict[str, Any]]:
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
    first, second = connected()
    second.leave()
    with pytest.raises(ConnectionError, match="another rank has left the training"):
        first.send_and_receive(0, b"")
    first.leave()


def test_nobody_can_connect_when_all_ranks_are_there():
    first, second = Exchange(), Exchange()
    port = first.open("127.0.0.1", 20)
    second.join("127.0.0.1", port, "token", 20)
    first.let_in(1, "token", 20)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for each in (first, second):
        each.leave()


def test_a_rank_that_sends_nothing_is_an_error_that_says_what_may_help():
    for rank in (0, 1):
        ends = connected(timeout_s=0.2)
        with pytest.raises(
            TimeoutError, match=rf"rank {rank} has waited 0\.2 s .* give them more time: XGBoostConfig\(timeout_s"
        ):
            ends[rank].send_and_receive(rank, b"")
        for each in ends:
            each.leave()


def test_a_rank_whose_labels_are_all_0_is_named_where_lightgbm_cannot_begin():
    where, labels = "the labels of the dataset 'train' on rank 1", np.zeros(3)
    with pytest.raises(
        DataError,
        match=r"poisson needs labels above 0 on every worker, but the labels .* rank 1 are all 0\. Shuffle the rows",
    ):
        require_share({"app": "poisson"}, labels, where, workers=2)
    with pytest.raises(
        DataError, match=r"above 0, but the labels .* are all 0\. Choose another label_column or objective"
    ):
        require_share({"app": "poisson"}, labels, where, workers=1)
    require_share({"app": "poisson"}, np.array([0.0, 1.0]), where, workers=2)
    require_share({"objective": "regression"}, labels, where, workers=2)
