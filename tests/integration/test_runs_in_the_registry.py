"""Finding, reading and writing runs, against a real MLflow store."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.integration.led_by_hand import abandon, begin, kill, start
from trainlib import RunConfig
from trainlib._data.datasets import DatasetFacts
from trainlib._registry import tags
from trainlib._registry.attempts import AttemptRecord, Outcome
from trainlib._registry.finding import find_recorded_run, find_run
from trainlib._registry.fingerprint import Fingerprint
from trainlib._registry.inputs import log_inputs
from trainlib._registry.opening import open_run
from trainlib._registry.run import RegisteredRun
from trainlib._registry.store import current_store
from trainlib.errors import RunInUseError, RunNotFoundError
from trainlib.tune import Tuner


def opened(name: str | None, **changes) -> RegisteredRun:
    config = RunConfig(name=name)
    arguments = {"store": current_store(), "default_name": "unnamed", "kind": "training", "tags": {}}
    return open_run(config, **{**arguments, "run": None, "flow_run_id": None, **changes})


def state(registry, run_id: str) -> tuple[object, ...]:
    run = registry.get_run(run_id)
    return run.info.status, run.info.end_time, run.data.tags, run.data.metrics, run.data.params


def test_reading_a_run_changes_nothing(registry, home):
    run = opened("only-read")
    run.metrics.write(1, {"loss": 0.5}, 10.0)
    run.metrics.write(2, {"loss": 0.25}, 20.0)
    run.record(AttemptRecord(1, Outcome.USER, None, message="no"))
    run.close("FAILED")
    os.rmdir(run.log_dir)
    before, threads = state(registry, run.run_id), set(threading.enumerate())
    recorded = find_recorded_run(registry, "only-read", RunConfig(), current_store())
    assert (recorded.run_id, recorded.name, recorded.status) == (run.run_id, "only-read", "FAILED")
    assert dict(recorded.history.rows()) == {1: {"loss": 0.5}, 2: {"loss": 0.25}}
    assert [(attempt.outcome, attempt.message) for attempt in recorded.attempts] == [(Outcome.USER, "no")]
    assert (recorded.url, recorded.log_dir) == (run.url, run.log_dir)
    written = RegisteredRun(registry, recorded, RunConfig().checkpoint_config, continued=True)
    assert written.iterations_before == 2
    assert state(registry, run.run_id) == before
    assert set(threading.enumerate()) <= threads, "one of the closed run may still end meanwhile, but none begins"
    assert not run.log_dir.exists()


def test_the_results_of_a_sweep_are_read_without_touching_it(registry):
    killed = begin("read-results")
    start(killed, 5.0)
    start(killed, 2.0, 0.5)
    kill(killed)
    ids = [killed.run.run_id, *(trial.training.run.run_id for trial in killed.trials)]
    before = [state(registry, run_id) for run_id in ids]
    threads = {thread.ident for thread in threading.enumerate()}
    results = Tuner.restore(killed.run.run_id).get_results()
    assert [result.metrics["loss"] for result in results] == [5.0, 0.5]
    assert [state(registry, run_id) for run_id in ids] == before
    assert {thread.ident for thread in threading.enumerate()} <= threads
    killed.close(KeyboardInterrupt())


def test_a_run_whose_process_died_is_continued_under_its_name(registry):
    run = opened("died", flow_run_id="first", tags={"mine": "1", **tags.of_flow_run("first", "http://prefect/1")})
    run.metrics.write(1, {"loss": 0.5}, 10.0)
    run.metrics.flush()
    with pytest.raises(RunInUseError, match="is being run by process"):
        opened("died")
    abandon(run)
    registry.set_tag(run.run_id, tags.MLFLOW_NOTE, "[Prefect flow run first](http://prefect/1)\n\nwritten by a person")
    flow_run = tags.of_flow_run("second", "http://prefect/2")
    continued = opened("died", flow_run_id="second", tags={"mine": "2", **flow_run})
    assert (continued.run_id, continued.continued) == (run.run_id, True)
    assert (continued.iterations_before, continued.flow_run_before) == (1, "first")
    assert [attempt.outcome for attempt in continued.attempts] == [Outcome.LOST]
    found = registry.get_run(run.run_id)
    assert (found.data.tags["mine"], found.data.tags[tags.FLOW_RUN_ID]) == ("2", "second")
    continued.close("FINISHED")
    link, written, heading, *attempts = registry.get_run(run.run_id).data.tags[tags.MLFLOW_NOTE].split("\n\n")
    assert (link, written) == (flow_run[tags.MLFLOW_NOTE], "written by a person")
    assert heading == "### Attempts"
    assert "the process that coordinated it ended" in attempts[1]
    assert opened("died").run_id != run.run_id, "a run that has ended is not continued by its name"


FIRST = Fingerprint(function="f1", config="c1", data="d1")


@pytest.mark.parametrize(
    ("status", "changed", "is_continued"),
    [
        ("KILLED", {}, True),
        ("KILLED", {"function": "f2"}, False),
        ("KILLED", {"config": "c2", "data": "d2"}, False),
        (None, {}, True),
        (None, {"data": "d2"}, False),
        ("FINISHED", {}, False),
        ("FAILED", {}, False),
        ("storage", {}, True),
        ("preempted", {}, True),
        ("worker", {}, False),
        ("user", {}, False),
    ],
)
def test_which_runs_are_continued_by_their_name(registry, status, changed, is_continued):
    """None stands for a process that was killed, a cause for a run that failed because of it."""
    name = f"continued-{status}-{'-'.join(changed)}"
    run = opened(name, fingerprint=FIRST)
    if status is None:
        abandon(run)
    elif status.islower():
        run.record(AttemptRecord(1, Outcome(status), None, message="it failed"))
        run.close("FAILED")
    else:
        run.close(status)
    said: list[str] = []
    again = opened(name, fingerprint=replace(FIRST, **changed), say=said.append)
    again.close("FINISHED")
    assert (again.run_id == run.run_id) is is_continued
    if is_continued:
        assert said == [
            f"continuing {name!r} (MLflow run {run.run_id}), which was interrupted at iteration 0. To start a new run "
            "instead, choose another RunConfig.name"
        ]
    elif changed:
        assert f"but its {' and '.join(changed)} differ" in said[0]
        assert registry.get_run(run.run_id).info.status == "KILLED"
    else:
        assert said == []
    # Whatever has become of it, restore continues it.
    restored = opened(None, run=run.run_id, fingerprint=replace(FIRST, config="c3"))
    restored.close("FINISHED")
    assert restored.run_id == run.run_id


def test_a_config_that_differs_is_shown():
    run = opened("other-config", fingerprint=FIRST)
    run.describe({"lr": 0.1, "width": 8}, {})
    run.close("KILLED")
    said: list[str] = []
    other = replace(FIRST, config="c2", params={"lr": "0.2", "width": "8", "depth": "2"})
    opened("other-config", fingerprint=other, say=said.append).close("FINISHED")
    assert "but its config (lr was 0.1, and is 0.2) differs." in said[0]


def test_a_run_without_a_name_is_not_continued():
    run = opened(None)
    run.close("KILLED")
    again = opened(None)
    again.close("FINISHED")
    assert again.run_id != run.run_id


def test_a_retried_flow_run_goes_on_unless_its_run_is_live():
    run = opened(None, flow_run_id="flow", fingerprint=FIRST)
    with pytest.raises(RunInUseError, match=f"is being run by process {os.getpid()} on "):
        opened(None, flow_run_id="flow", fingerprint=FIRST)
    run.close("FAILED")
    again = opened(None, flow_run_id="flow", fingerprint=FIRST)
    again.close("FAILED")
    assert again.run_id == run.run_id
    changed = opened(None, flow_run_id="flow", fingerprint=replace(FIRST, config="c2"))
    changed.close("FINISHED")
    assert changed.run_id != run.run_id


def test_a_run_that_must_not_be_continued_stays_as_it_is(registry):
    run = opened("refused")
    abandon(run)
    before = state(registry, run.run_id)

    def refuse(found) -> None:
        raise ValueError(f"not {found.info.run_name}")

    with pytest.raises(ValueError, match="not refused"):
        opened("refused", require=refuse)
    assert state(registry, run.run_id) == before


def test_a_run_whose_folder_cannot_be_made_does_not_look_as_if_it_ran(registry, newest_run, monkeypatch, tmp_path):
    (tmp_path / "runs").write_text("a file is in the way")
    store = current_store()
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    with pytest.raises(NotADirectoryError):
        opened("no-folder", store=store)
    assert newest_run("no-folder").info.status == "FAILED"


@pytest.mark.parametrize("name", ['the "best"', "a b/c"])
def test_names_with_quotes_are_found(registry, name):
    run = opened(name)
    assert find_run(registry, name).info.run_id == run.run_id
    abandon(run)
    assert opened(name).run_id == run.run_id
    run.close("FINISHED")


def test_a_run_that_somebody_else_named_is_found(registry):
    run = registry.create_run(registry.create_experiment("theirs"), run_name="Ada's")
    assert find_run(registry, "Ada's").info.run_id == run.info.run_id


def test_a_run_that_does_not_exist(registry):
    with pytest.raises(RunNotFoundError, match=r"no training named 'nobody'.* in sqlite:"):
        find_run(registry, "nobody")


def test_runs_that_list_a_new_dataset_in_the_same_instant_all_have_it(registry):
    experiment = registry.create_experiment("datasets at once")
    for round_ in range(10):
        facts = [DatasetFacts(name, "rows.csv", "files", f"{name}{round_}", 8, {"x": "int64"}) for name in ("a", "b")]
        runs = [registry.create_run(experiment).info.run_id for _ in range(6)]
        ready = threading.Barrier(len(runs))

        def list_inputs(run_id: str, facts: list[DatasetFacts] = facts, ready: threading.Barrier = ready) -> None:
            ready.wait()
            log_inputs(registry, run_id, facts)

        with ThreadPoolExecutor(len(runs)) as threads:
            list(threads.map(list_inputs, runs))
        for run_id in runs:
            listed = registry.get_run(run_id).inputs.dataset_inputs
            assert sorted(each.dataset.digest for each in listed) == [f"a{round_}", f"b{round_}"]
