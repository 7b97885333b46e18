"""The view of a sweep's trials in MLflow's table of runs."""

from __future__ import annotations

import json

from trainlib._registry.views import trials_view


def test_the_view_has_the_trials_of_one_sweep_the_best_first_and_what_was_searched():
    [(tag, value)] = trials_view("abc", ["model.lr", "x%"], metric="recall@10", mode="max").items()
    assert tag == "mlflow.sharedViewState.abc"
    view = json.loads(value)
    assert view["searchFilter"] == "tags.`mlflow.parentRunId` = 'abc'"
    assert (view["orderByKey"], view["orderByAsc"]) == ("metrics.`recall at 10`", False)
    assert view["selectedColumns"][:2] == ["metrics.`recall at 10`", "params.`model.lr`"]
    assert view["selectedColumns"][2].startswith("params.`x_-"), "the name that MLflow has for it"


def test_without_a_metric_the_order_is_mlflows_own():
    (value,) = trials_view("abc", ["lr"], metric=None, mode=None).values()
    assert json.loads(value)["selectedColumns"] == ["params.`lr`"]
    assert "orderByKey" not in json.loads(value)


def test_a_view_of_many_params_is_no_longer_than_mlflow_accepts():
    (value,) = trials_view("abc", [f"param_{number}" for number in range(1000)], metric="loss", mode="min").values()
    assert 4900 < len(value) <= 5000
    assert len(json.loads(value)["selectedColumns"]) > 100
