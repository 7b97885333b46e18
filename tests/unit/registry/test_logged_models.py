"""Checkpoints as logged models."""

from __future__ import annotations

from mlflow.entities import LoggedModel, LoggedModelStatus, LoggedModelTag

from trainlib._registry.logged_models import as_saved, checkpoint_tags, location_of
from trainlib._registry.retention import SavedCheckpoint

URI = "sqlite:////data/mlflow.db"


def model(tags: dict[str, str], location: str = "file:///artifacts/models/m-1/artifacts") -> LoggedModel:
    return LoggedModel(
        experiment_id="0",
        model_id="m-1",
        name="checkpoint_000003",
        artifact_location=location,
        creation_timestamp=0,
        last_updated_timestamp=0,
        status=LoggedModelStatus.READY,
        tags=[LoggedModelTag(key, value) for key, value in tags.items()],
    )


def test_a_checkpoint_is_known_again_by_its_tags():
    tags = checkpoint_tags(index=3, iteration=4, seconds=1.5, score=0.1, metrics={"loss": 0.1})
    location = "/artifacts/models/m-1/artifacts/checkpoint_000003"
    assert as_saved(model(tags), URI) == SavedCheckpoint(3, 4, "m-1", location, 0.1, {"loss": 0.1}, 1.5)


def test_without_a_score():
    saved = as_saved(model(checkpoint_tags(index=0, iteration=1, seconds=0.0, score=None, metrics={})), URI)
    assert saved.score is None


def test_metrics_that_are_too_long_for_a_tag_have_several():
    metrics = {f"metric {number}": number / 7 for number in range(1000)}
    tags = checkpoint_tags(index=0, iteration=1, seconds=0.0, score=0.5, metrics=metrics)
    assert max(len(value) for value in tags.values()) < 5000
    assert as_saved(model(tags), URI).metrics == metrics


def test_a_location_names_its_server_if_the_environment_does_not(monkeypatch):
    behind = model({}, "mlflow-artifacts:/7/models/m-1/artifacts")
    uri = "https://mlflow.example/team"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert location_of(behind, 3, uri) == "mlflow-artifacts:/7/models/m-1/artifacts/checkpoint_000003"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    served = "https://mlflow.example/team/api/2.0/mlflow-artifacts/artifacts/7/models/m-1/artifacts/checkpoint_000003"
    assert location_of(behind, 3, uri) == served
    assert location_of(model({}, "s3://bucket/m-1"), 3, uri) == "s3://bucket/m-1/checkpoint_000003"
