"""The metric writer, against a real MLflow store."""

from __future__ import annotations

import threading
import time

from trainlib._registry.metrics import MetricWriter


def no_warning(text: str) -> None:
    raise AssertionError(text)


def test_flush_does_not_wait_for_what_comes_meanwhile(registry, tmp_path):
    """A checkpoint is committed after a flush, also while a training reports all the time."""
    run = registry.create_run(registry.create_experiment("flush"))
    writer = MetricWriter(registry, run.info.run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    stop = threading.Event()
    reached = 0

    def report() -> None:
        nonlocal reached
        while not stop.is_set():
            reached += 1
            writer.write(reached, {"a": reached}, time.time(), warn=no_warning)
            time.sleep(0.002)

    reporting = threading.Thread(target=report)
    reporting.start()
    try:
        time.sleep(0.5)
        for _ in range(5):
            before = reached
            started = time.monotonic()
            writer.flush()
            assert time.monotonic() - started < 5.0
            recorded = max(point.step for point in registry.get_metric_history(run.info.run_id, "a"))
            assert recorded >= before
    finally:
        stop.set()
        reporting.join()
    writer.close()
    steps = [point.step for point in registry.get_metric_history(run.info.run_id, "a")]
    assert steps == list(range(1, reached + 1))


def test_points_that_mlflow_does_not_take_are_kept_in_a_file(registry, tmp_path, monkeypatch):
    from trainlib._registry import metrics

    monkeypatch.setattr(metrics, "GIVE_UP_S", 0.5)
    monkeypatch.setattr(metrics, "RETRY_S", 0.2)
    run = registry.create_run(registry.create_experiment("unsaved"))
    writer = MetricWriter(registry, run.info.run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    registry.delete_run(run.info.run_id)  # MLflow refuses points of a deleted run
    writer.write(1, {"a": 0.5}, 1.0, warn=no_warning)
    error = None
    try:
        writer.close()
    except metrics.ConnectionFailedError as raised:
        error = raised
    assert error is not None
    assert "did not take 1 metric points" in str(error)
    assert (tmp_path / "unsaved.jsonl").read_text() == '{"key": "a", "value": 0.5, "timestamp": 1000, "step": 1}\n'
