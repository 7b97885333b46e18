"""LightGBM measures on each rank's own rows: what is reported is what it would measure on all of them."""

from __future__ import annotations

import socket
import threading

import lightgbm
import numpy as np
import pyarrow as pa
import pytest

from trainlib import session
from trainlib._boosting.admission import admit
from trainlib._boosting.rounds import threads
from trainlib._boosting.table import LabelledTable
from trainlib.lightgbm import _sums as sums
from trainlib.lightgbm._metrics import MeanMetrics

ROWS = np.random.default_rng(0).normal(size=(400, 3))
NOISE = np.random.default_rng(1).normal(size=400)
WEIGHTS = np.random.default_rng(2).uniform(0.1, 5, size=400)
POSITIVE = np.exp(ROWS[:, 0] + NOISE)
SHARES = {"first": slice(0, 100), "second": slice(100, 400)}
EXACT = {
    "gamma": [
        "l1",
        "l2",
        "rmse",
        "quantile",
        "mape",
        "huber",
        "fair",
        "poisson",
        "gamma",
        "gamma_deviance",
        "tweedie",
        "r2",
    ],
    "binary": ["binary_logloss", "binary_error", "cross_entropy", "kullback_leibler", "cross_entropy_lambda"],
}


def measured(objective: str, labels: np.ndarray, weights: np.ndarray | None) -> dict[str, list]:
    """What LightGBM says of the same model on all rows and on each share."""
    params = {"objective": objective, "metric": EXACT[objective], "num_leaves": 4, "verbosity": -1}
    whole = lightgbm.Dataset(ROWS, labels, weight=weights)
    parts = {
        name: lightgbm.Dataset(
            ROWS[share], labels[share], weight=None if weights is None else weights[share], reference=whole
        )
        for name, share in SHARES.items()
    }
    seen: list = []
    names = ["whole", *parts]
    lightgbm.train(
        params,
        whole,
        2,
        valid_sets=[whole, *parts.values()],
        valid_names=names,
        callbacks=[lambda env: seen.append(env.evaluation_result_list)],
    )
    return {name: [("train", *rest) for dataset, *rest in seen[-1] if dataset == name] for name in names}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
@pytest.mark.parametrize("objective", EXACT)
def test_metrics_of_two_ranks_are_those_of_one(monkeypatch, objective, weights):
    labels = POSITIVE if objective == "gamma" else (ROWS[:, 0] + NOISE > 0).astype(float)
    seen = measured(objective, labels, weights)
    monkeypatch.setattr(session, "get_world_size", lambda: 2)
    ranks = {
        name: MeanMetrics(
            {
                "train": LabelledTable(
                    "train",
                    pa.table({"a": ROWS[share][:, 0]}),
                    labels[share].astype("float32"),
                    {} if weights is None else {"weight": weights[share].astype("float32")},
                )
            }
        )
        for name, share in SHARES.items()
    }
    meeting = threading.Barrier(2)
    given: dict[int, list[float]] = {}

    def add_up(numbers):
        given[threading.get_ident()] = list(numbers)
        meeting.wait(10)
        total = [sum(each) for each in zip(*given.values(), strict=True)]
        meeting.wait(10)
        return total

    monkeypatch.setattr(sums, "add_up", add_up)
    results: dict[str, dict[str, float]] = {}
    workers = [
        threading.Thread(target=lambda n=name: results.update({n: ranks[n].over_ranks(seen[n])})) for name in ranks
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(20)
    expected = {f"train-{metric}": value for _, metric, value, *_ in seen["whole"]}
    assert set(expected) == {f"train-{metric}" for metric in EXACT[objective]}
    assert results["first"] == results["second"]
    assert results["first"] == pytest.approx(expected, rel=1e-4)


def test_strangers_keep_nobody_out_and_nobody_waiting():
    token = b"0123456789abcdef"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)

        def connect(said: bytes) -> socket.socket:
            connection = socket.create_connection(listener.getsockname(), timeout=10)
            connection.sendall(said)
            return connection

        with connect(b"") as silent, connect(b"0" * 16) as wrong, connect(token) as first:
            connect(b"").close()
            connect(token[:4]).close()
            with connect(token[:5]) as second:
                second.sendall(token[5:])
                admitted = admit(listener, token, 2, timeout_s=10)
                assert {each.getpeername() for each in admitted} == {first.getsockname(), second.getsockname()}
                assert (silent.recv(1), wrong.recv(1)) == (b"", b""), "they are shut out"
                for each in admitted:
                    each.close()
        with connect(b""), pytest.raises(TimeoutError, match=r"1 of 1 ranks have not connected within 0.05 s"):
            admit(listener, token, 1, timeout_s=0.05)


@pytest.mark.parametrize(("given", "expected"), [("4", 4), ("4,2", 4), (" 3 ", 3), ("", 1), ("0", 1), ("many", 1)])
def test_threads_are_those_of_the_outermost_level(monkeypatch, given, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert threads() == expected
