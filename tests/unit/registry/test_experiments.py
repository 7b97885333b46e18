"""Which experiment a training belongs to, and where its artifacts are."""

from __future__ import annotations

import pytest

from trainlib._registry.experiments import default_location, is_inside


@pytest.mark.parametrize(
    ("location", "root", "inside"),
    [
        ("/runs", "/runs", True),
        ("/runs/artifacts", "/runs", True),
        ("/runs/artifacts", "/runs/", True),
        ("file:///runs/artifacts", "/runs", True),
        ("/runs2/artifacts", "/runs", False),
        ("/", "/runs", False),
        ("/runs", "/", True),
        ("s3://bucket/runs/artifacts", "s3://bucket/runs", True),
        ("s3://bucket/runs2", "s3://bucket/runs", False),
        ("s3://bucket2/runs", "s3://bucket", False),
        ("gs://bucket/runs", "s3://bucket/runs", False),
    ],
)
def test_a_folder_of_a_similar_name_is_not_inside(location, root, inside):
    assert is_inside(location, root) is inside


def test_artifacts_are_kept_beside_the_database(monkeypatch, tmp_path):
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    assert default_location("sqlite:////data/mlflow.db", "digits") == "file:///data/artifacts/digits"
    assert default_location("sqlite:////data/mlflow.db", "a/b") == "file:///data/artifacts/a_b"
    assert default_location("postgresql://host/mlflow", "digits") == f"file://{tmp_path}/artifacts/digits"
    assert default_location("http://mlflow:5000", "digits") is None, "the server decides"
