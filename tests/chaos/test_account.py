"""The account of a training sees what is wrong with it, so that an account without anything wrong means something."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

from mlflow import MlflowClient

from tests.chaos import account, victims
from tests.chaos.account import Witness
from tests.chaos.plans import draw
from trainlib import Checkpoint
from trainlib._registry.client import connect
from trainlib._registry.logged_models import checkpoint_name, checkpoint_tags, location_of
from trainlib._registry.store import current_store

PLAN = draw(0, faults=1)


def save(client: MlflowClient, run, index: int, state: dict, *, status: str = "READY") -> None:
    """A checkpoint, as a training saves it."""
    model = client.create_logged_model(
        run.info.experiment_id,
        name=checkpoint_name(index),
        source_run_id=run.info.run_id,
        tags=checkpoint_tags(index=index, iteration=3 * index + 1, seconds=0.0, score=None, metrics={}),
        model_type="checkpoint",
    )
    Checkpoint.from_dict(state).to_directory(location_of(model, index, client.tracking_uri))
    if status == "READY":
        client.finalize_logged_model(model.model_id, "READY")


def test_everything_that_is_wrong_is_counted(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(account, "_PATIENCE_S", 0.0)
    client = connect(current_store())
    experiment = client.create_experiment(PLAN.name, artifact_location=str(tmp_path / "storage"))
    run = client.create_run(experiment)
    for step in range(PLAN.steps):
        if step != 5:
            client.log_metric(run.info.run_id, "value", victims.value_of(0, step) + (step == 6), step=step + 1)
    client.log_metric(run.info.run_id, "value", victims.value_of(0, 7), timestamp=1, step=8)
    whole = bytes(victims.PADDING)
    save(client, run, 0, {"step": 0, "padding": whole})
    save(client, run, 1, {"step": 3, "padding": whole[:10]})
    save(client, run, 2, {"step": 6, "padding": whole}, status="PENDING")
    witness = Witness(plan=PLAN, folder=tmp_path, storage=tmp_path / "storage", pids={os.getpid()}, made=20)
    witness.saved = [(0, {0: 3})]
    witness.starts = [(0, 2)]
    scene = SimpleNamespace(
        mlflow=SimpleNamespace(uri=client.tracking_uri),
        ray=SimpleNamespace(ask=lambda command: {"actors": 2, "groups": 1}),
    )

    outcome = account.take(witness, scene)  # type: ignore[arg-type]
    assert outcome.counts == {
        "steps lost": 2,
        "points lost": 1,
        "points doubled": 1,
        "points wrong": 1,
        "runs not right": 1,
        "half checkpoints": 2,
        "processes left": 1,
        "actors left": 2,
        "groups left": 1,
        "files left": 1,
    }
    assert not outcome.is_clean
    assert outcome.repeated == 20 - PLAN.steps
    assert "points lost: trial 0: steps [5]" in outcome.problems
    assert "steps lost: trial 0 began at 2, but 3 was saved" in outcome.problems
