"""MLflow goes away or hangs, against a real server: nothing is lost, and one line says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mlflow import MlflowClient

from tests.integration.mlflow_server import MlflowServer
from tests.longest import LONGEST_S
from trainlib import Checkpoint, DataParallelTrainer, FailureConfig, RunConfig, TrainingFailedError, session
from trainlib._execution import cluster
from trainlib._execution.causes import Cause
from trainlib._registry import metric_writer, patience
from trainlib._registry.attempts import AttemptRecord, Outcome, recorded_attempts
from trainlib._registry.logged_models import read_checkpoints
from trainlib._registry.opening import open_run
from trainlib._registry.run import RegisteredRun
from trainlib._registry.store import TrackingStore
from trainlib.errors import ConnectionFailedError


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[MlflowServer]:
    cluster.connect()  # a Ray that starts later would hand this server's address on to all workers of the session
    running = MlflowServer(tmp_path_factory.mktemp("mlflow"))
    running.start()
    try:
        yield running
    finally:
        running.kill()


@pytest.fixture(autouse=True)
def _impatient(server, monkeypatch) -> None:
    """This server is the store, and nobody tries for minutes. One that is gone refuses calls at once, and one that has just started may
    take seconds for its first answer."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    monkeypatch.setattr(patience, "RETRY_S", 0.3)
    monkeypatch.setattr(metric_writer, "RETRY_S", 0.3)


@pytest.fixture
def client(server) -> MlflowClient:
    return MlflowClient(server.uri)


def opened(server: MlflowServer, name: str, *, minutes: float = 10.0) -> RegisteredRun:
    return open_run(
        RunConfig(name=name, failure_config=FailureConfig(mlflow_timeout_min=minutes)),
        store=TrackingStore(server.uri),
        default_name=name,
        kind="training",
        run=None,
        flow_run_id=None,
        tags={},
    )


def wait_for(what: Callable[[], bool], timeout: float = LONGEST_S) -> None:
    deadline = time.monotonic() + timeout
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def steps(client: MlflowClient, run_id: str, metric: str) -> list[int]:
    return [point.step for point in client.get_metric_history(run_id, metric)]


def unfinished(client: MlflowClient, run_id: str) -> list[object]:
    return list(read_checkpoints(client, client.get_run(run_id).info.experiment_id, run_id).unfinished)


def test_the_writer_catches_up_from_its_file_in_order_and_without_doubles(server, client):
    run = opened(server, "catches up", minutes=0.02)
    file = run.log_dir / "unsaved.jsonl"
    run.metrics.write(1, {"loss": 1.0}, 1.0)
    run.metrics.flush()
    server.kill()
    for iteration in range(2, 1500):
        run.metrics.write(iteration, {"loss": 1.0 / iteration}, float(iteration))
    with pytest.raises(ConnectionFailedError, match=r"has not answered for .* is in .*unsaved.jsonl"):
        run.metrics.flush()
    run.metrics.write(1500, {"loss": 0.0}, 1500.0)  # after it gave up
    run.metrics.note(tags={"late": "yes"})
    wait_for(lambda: file.read_text().count("\n") == 1500)
    server.start()
    run.metrics.flush()
    assert steps(client, run.run_id, "loss") == list(range(1, 1501))
    assert client.get_run(run.run_id).data.tags["late"] == "yes"
    wait_for(lambda: not file.exists())
    said = run.remarks()
    assert ["does not answer" in line for line in said] == [True, False], said
    run.metrics.write(1501, {"loss": 0.0}, 1501.0)
    run.close("FINISHED")
    assert steps(client, run.run_id, "loss")[-1] == 1501


def test_a_run_that_ends_while_mlflow_is_away_is_ended_when_it_is_back(server, client):
    run = opened(server, "ends while away", minutes=0.02)
    run.metrics.write(1, {"loss": 1.0}, 1.0)
    run.metrics.flush()
    server.kill()
    run.metrics.write(2, {"loss": 0.5}, 2.0)
    run.record(AttemptRecord(1, Outcome.SERVICE, None, message="away"))
    with pytest.raises(ConnectionFailedError):
        run.close("FAILED")
    server.start()
    wait_for(lambda: client.get_run(run.run_id).info.status == "FAILED")
    assert steps(client, run.run_id, "loss") == [1, 2]
    (attempt,) = recorded_attempts(client.get_run(run.run_id).data.tags)
    assert attempt.outcome is Outcome.SERVICE
    assert not (run.log_dir / "unsaved.jsonl").exists()


def test_the_next_process_writes_what_one_had_to_leave(server, client):
    """As if the process had been killed while MLflow was away: its file is all that is left."""
    run = opened(server, "left behind")
    run.metrics.write(1, {"loss": 1.0}, 1.0)
    run.metrics.close()
    (run.log_dir / "unsaved.jsonl").write_text(
        '{"key": "loss", "value": 1.0, "timestamp": 1000, "step": 1}\n'
        '{"key": "loss", "value": 0.5, "timestamp": 2000, "step": 2}\n'
    )
    run.lease.abandon()
    client.set_terminated(run.run_id, "KILLED")
    again = open_run(
        RunConfig(name="left behind"),
        store=TrackingStore(server.uri),
        default_name="left behind",
        kind="training",
        run=run.run_id,
        flow_run_id=None,
        tags={},
    )
    assert dict(again.recorded.history.rows()) == {1: {"loss": 1.0}, 2: {"loss": 0.5}}
    again.metrics.write(2, {"loss": 0.4}, 9.0)  # repeated from an earlier checkpoint
    again.metrics.write(3, {"loss": 0.3}, 9.0)
    again.close("FINISHED")
    assert steps(client, run.run_id, "loss") == [1, 2, 3]
    assert not (run.log_dir / "unsaved.jsonl").exists()


def train_func(config: dict) -> None:
    """Reports checkpoints until the test has done what it does."""
    checkpoint = session.get_checkpoint()
    start = checkpoint.to_dict()["step"] + 1 if checkpoint else 0
    folder = Path(config["folder"])
    (folder / f"attempt-{session.get_context().get_attempt()}").touch()
    for step in range(start, 10_000):
        session.report({"step": step}, checkpoint=Checkpoint.from_dict({"step": step}))
        (folder / "step").write_text(str(step))
        time.sleep(0.2)
        if (folder / "done").exists():
            return


def trainer(folder: Path, name: str, **failures) -> DataParallelTrainer:
    return DataParallelTrainer(
        train_func,
        train_loop_config={"folder": str(folder)},
        run_config=RunConfig(name=name, failure_config=FailureConfig(**failures)),
    )


@pytest.fixture
def meanwhile() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Runs something in a thread while the test trains. What it raises, the test raises."""
    threads: list[threading.Thread] = []
    errors: list[BaseException] = []

    def start(act: Callable[[], None]) -> None:
        def run() -> None:
            try:
                act()
            except BaseException as error:
                errors.append(error)

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()
    assert errors == []


def reaches(folder: Path, step: int) -> Callable[[], bool]:
    return lambda: (folder / "step").exists() and int((folder / "step").read_text() or 0) >= step


def test_a_training_waits_for_mlflow_and_goes_on(server, client, tmp_path, capsys, caplog, monkeypatch, meanwhile):
    """First it hangs, then it is killed and started again."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # each of which is a line of urllib3's
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")

    def disturb() -> None:
        try:
            wait_for(reaches(tmp_path, 3))
            server.hang()
            time.sleep(3.0)
            server.go_on()
            time.sleep(2.0)
            server.kill()
            time.sleep(1.0)
            server.start()
            time.sleep(1.0)
        finally:
            (tmp_path / "done").touch()

    meanwhile(disturb)
    result = trainer(tmp_path, "waits").fit()
    assert result.attempts == 1
    run = client.get_run(result.run_id)
    assert run.info.status == "FINISHED"
    last = int(run.data.metrics["step"])
    assert steps(client, result.run_id, "step") == list(range(1, last + 2))
    found = read_checkpoints(client, run.info.experiment_id, result.run_id)
    assert [saved.index for saved in found.saved] == list(range(last + 1)), "each is there, and each once"
    assert found.unfinished == ()
    for saved in found.saved:
        linked = client.get_logged_model(saved.model_id).metrics
        assert [metric.value for metric in linked if metric.key == "step"] == [float(saved.index)]
    said = capsys.readouterr().err
    assert said.count("does not answer") == said.count("answers again") == 2, said
    assert "Traceback" not in said
    assert "Retrying (" not in said + caplog.text


def test_an_mlflow_that_is_away_for_too_long_is_a_failure_that_is_retried(server, client, tmp_path, capsys, meanwhile):
    def disturb() -> None:
        try:
            wait_for(reaches(tmp_path, 3))
            server.kill()
            wait_for((tmp_path / "attempt-2").exists)
            server.start()
            time.sleep(2.0)
        finally:
            (tmp_path / "done").touch()

    meanwhile(disturb)
    result = trainer(tmp_path, "retried", max_failures=10, mlflow_timeout_min=0.1).fit()
    run = client.get_run(result.run_id)
    assert run.info.status == "FINISHED"
    outcomes = [attempt.outcome for attempt in recorded_attempts(run.data.tags)]
    assert outcomes[0] is Outcome.SERVICE
    assert outcomes[-1] is Outcome.FINISHED
    assert result.attempts == len(outcomes)
    last = int(run.data.metrics["step"])
    assert steps(client, result.run_id, "step") == list(range(1, last + 2)), "no point is lost or doubled"
    assert unfinished(client, result.run_id) == []


def test_without_retries_it_is_the_end(server, client, tmp_path, meanwhile, newest_run_of):
    def disturb() -> None:
        wait_for(reaches(tmp_path, 3))
        server.kill()

    meanwhile(disturb)
    try:
        with pytest.raises(
            TrainingFailedError, match=r"MLflow at .* has not answered for .*mlflow_timeout_min"
        ) as caught:
            trainer(tmp_path, "not retried", mlflow_timeout_min=0.03).fit()
    finally:
        server.start()
    assert caught.value.cause is Cause.SERVICE
    run_id = newest_run_of("not retried")
    wait_for(lambda: client.get_run(run_id).info.status == "FAILED")
    (attempt,) = recorded_attempts(client.get_run(run_id).data.tags)
    assert attempt.outcome is Outcome.SERVICE
    assert unfinished(client, run_id) == []


@pytest.fixture
def newest_run_of(client) -> Callable[[str], str]:
    def find(name: str) -> str:
        experiments = [experiment.experiment_id for experiment in client.search_experiments()]
        (run,) = client.search_runs(experiments, f"attributes.run_name = '{name}'")
        return run.info.run_id

    return find
