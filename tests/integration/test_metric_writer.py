"""The metric writer, against a real MLflow store."""

from __future__ import annotations

import threading
import time

from mlflow import MlflowClient

from trainlib._registry import metric_writer
from trainlib._registry.metric_history import read_history
from trainlib._registry.metric_writer import MetricWriter


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
            assert writer.write(reached, {"a": reached}, time.time()) == []
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


def test_points_that_mlflow_does_not_take_are_kept_in_a_file(registry, tmp_path):
    run = registry.create_run(registry.create_experiment("unsaved"))
    writer = MetricWriter(registry, run.info.run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    registry.delete_run(run.info.run_id)  # MLflow refuses points of a deleted run
    assert writer.write(1, {"a": 0.5}, 1.0) == []
    error = None
    try:
        writer.close()
    except metric_writer.ConnectionFailedError as raised:
        error = raised
    assert error is not None
    assert "did not accept 1 metric points" in str(error)
    assert (tmp_path / "unsaved.jsonl").read_text() == '{"key": "a", "value": 0.5, "timestamp": 1000, "step": 1}\n'


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "metric-writer"]


def test_a_writer_that_writes_nothing_starts_no_thread(registry, tmp_path):
    run = registry.create_run(registry.create_experiment("no-thread"))
    before = threads()
    writer = MetricWriter(registry, run.info.run_id, last_steps={"a": 3}, unsaved=tmp_path / "unsaved.jsonl")
    assert writer.write(3, {"a": 0.5}, 1.0) == []  # repeated: it leaves no second point
    writer.flush()
    assert threads() == before
    writer.close()


def test_params_and_tags_are_written_although_no_point_comes(registry, tmp_path):
    run = registry.create_run(registry.create_experiment("notes"))
    for number, end in enumerate((MetricWriter.flush, MetricWriter.close)):
        writer = MetricWriter(registry, run.info.run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
        writer.note(params={f"p{number}": number}, tags={f"t{number}": str(number)})
        end(writer)
        data = registry.get_run(run.info.run_id).data
        assert (data.params[f"p{number}"], data.tags[f"t{number}"]) == (str(number), str(number))
        writer.close()


def test_what_was_written_can_be_read_back_and_goes_on(registry, tmp_path):
    """Metrics about data are ahead of what was reported: they do not count as iterations."""
    run_id = registry.create_run(registry.create_experiment("read-back")).info.run_id
    writer = MetricWriter(registry, run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    assert writer.write(1, {"a": 0.5, "recall@10": 1.0}, 10.0) == [
        "metric 'recall@10' is called 'recall at 10' in MLflow, which does not accept its name"
    ]
    assert writer.write(2, {"a": 0.25}, 20.0) == []
    assert writer.write(3, {"system/data/train/rows": 99.0}, 30.0) == []
    writer.close()
    history = read_history(registry, registry.get_run(run_id))
    assert dict(history.rows()) == {1: {"a": 0.5, "recall at 10": 1.0}, 2: {"a": 0.25}}
    assert history.reported_at() == {1: 10.0, 2: 20.0}
    assert history.last_steps == {"a": 2, "recall at 10": 1, "system/data/train/rows": 3}
    assert history.last_iteration == 2

    writer = MetricWriter(registry, run_id, last_steps=history.last_steps, unsaved=tmp_path / "unsaved.jsonl")
    for iteration in (2, 3):
        assert writer.write(iteration, {"a": 1.0, "system/data/train/rows": 98.0}, 40.0) == []
    writer.close()
    again = read_history(registry, registry.get_run(run_id))
    assert dict(again.rows()) == {**dict(history.rows()), 3: {"a": 1.0}}
    assert len(registry.get_metric_history(run_id, "system/data/train/rows")) == 1


class SlowToFail:
    """A client of a real store, whose first write waits until it is told to fail, as if the server had been killed."""

    def __init__(self, client: MlflowClient) -> None:
        self._client = client
        self.is_writing, self.fails = threading.Event(), threading.Event()
        self.tracking_uri = client.tracking_uri

    def log_batch(self, *args, **kwargs) -> None:
        if not self.is_writing.is_set():
            self.is_writing.set()
            self.fails.wait()
            raise ConnectionResetError("the server is gone")
        self._client.log_batch(*args, **kwargs)


def test_a_training_that_reports_faster_than_mlflow_writes_fills_no_memory_and_loses_nothing(
    registry, tmp_path, monkeypatch
):
    """Points that MLflow has no time for wait in the file, also while a call hangs. They arrive in order, once."""
    monkeypatch.setattr(metric_writer, "IN_MEMORY", 100)
    monkeypatch.setattr(metric_writer, "RETRY_S", 0.2)
    run_id = registry.create_run(registry.create_experiment("slow-mlflow")).info.run_id
    client = SlowToFail(registry)
    writer = MetricWriter(client, run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    writer.note(tags={"noted": "yes"})
    count, waiting = 6000, []
    for iteration in range(1, count + 1):
        assert writer.write(iteration, {"a": iteration}, 1.0 + iteration) == []
        waiting.append(len(writer._points))
        if iteration == 10:
            assert client.is_writing.wait(10)
        if iteration == 2000:
            client.fails.set()
    assert max(waiting) <= 100
    writer.flush()
    writer.write(count + 1, {"a": count + 1}, 2.0 + count)  # it has caught up: nothing goes through the file any more
    writer.close()
    points = registry.get_metric_history(run_id, "a")
    assert [point.step for point in points] == list(range(1, count + 2))
    assert registry.get_run(run_id).data.tags["noted"] == "yes"
    assert list(tmp_path.iterdir()) == []


def test_a_report_with_more_metrics_than_wait_in_memory_is_written(registry, tmp_path, monkeypatch):
    monkeypatch.setattr(metric_writer, "IN_MEMORY", 100)
    run_id = registry.create_run(registry.create_experiment("wide-report")).info.run_id
    writer = MetricWriter(registry, run_id, last_steps={}, unsaved=tmp_path / "unsaved.jsonl")
    writer.write(1, {f"m{number}": number for number in range(150)}, 1.0)
    writer.flush()
    assert len(registry.get_run(run_id).data.metrics) == 150
    writer.close()
