"""Versions of a model that several processes register at the same time: the best one has the alias in the end."""

from __future__ import annotations

import threading
from dataclasses import replace

from tests.integration.test_runs_in_the_registry import opened
from trainlib._registry.models import ModelVersion, Selection, register


def test_of_versions_registered_at_once_the_best_has_the_alias(registry):
    run = opened(None)
    model = registry.create_logged_model(run.experiment_id, source_run_id=run.run_id)
    run.close("FINISHED")
    one = Selection(run.run_id, model.model_id, "/somewhere", 1, "accuracy", "max", 0.0)
    for round_ in range(4):
        name, scores = f"at-once-{round_}", (0.3, 0.9, 0.1, 0.7, 0.5)
        start = threading.Barrier(len(scores))
        versions: dict[float, ModelVersion] = {}

        def add(score: float) -> None:
            start.wait()  # noqa: B023
            versions[score] = register(replace(one, score=score), name)  # noqa: B023

        threads = [threading.Thread(target=add, args=(score,)) for score in scores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        holder = registry.get_model_version_by_alias(name, "best")
        assert str(holder.version) == versions[0.9].version
        assert versions[0.9].promoted
        for score, version in versions.items():
            assert version.promoted == (version.previous_score is None or version.previous_score < score)
