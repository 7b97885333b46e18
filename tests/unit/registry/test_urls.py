"""The addresses of MLflow's pages."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlparse

import pytest

from tests.unit.registry.test_tags import ROOT, sources, texts
from trainlib._registry.urls import compare_link, model_url, page, run_url, trials_url


@pytest.mark.parametrize(
    ("store", "base"),
    [
        ("https://mlflow.example/team/", "https://mlflow.example/team"),
        ("https://ada:pw@mlflow.example", "https://mlflow.example"),
        ("sqlite:////data/mlflow.db", "http://127.0.0.1:5000"),
    ],
)
def test_all_pages_open_the_view_for_training_and_no_address_has_a_password(store, base):
    run, trials, compare = (
        run_url(store, "1", "abc"),
        trials_url(store, "1", "abc"),
        page(store, compare_link("1", ["a"])),
    )
    assert run == f"{base}/#/experiments/1/runs/abc?workflowType=machine_learning"
    for url in (run, trials, compare, model_url(store, "a/b", "3")):
        assert url.startswith(f"{base}/#/")
        assert parse_qs(urlparse(url).fragment.partition("?")[2])["workflowType"] == ["machine_learning"]


def test_runs_to_compare_are_named_as_mlflow_reads_them():
    query = parse_qs(compare_link("7", ["a", "b"]).partition("?")[2])
    assert json.loads(query["runs"][0]) == ["a", "b"]
    assert json.loads(query["experiments"][0]) == ["7"]


def test_nobody_else_spells_such_an_address():
    spelled = {
        str(path.relative_to(ROOT))
        for path in sources()
        for text in texts(path.read_text())
        if "#/" in text or "workflowType" in text or "get-artifact" in text
    }
    assert spelled <= {"_registry/urls.py"}
