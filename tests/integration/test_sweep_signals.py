"""However the process of a sweep ends, nothing is left behind, and the sweep can be continued."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.integration.leftovers import assert_nothing_left_behind
from tests.integration.shown_sweeps import children
from tests.integration.test_signals import is_alive, wait_until_dead
from trainlib import RunConfig, session, tune
from trainlib._stacks import stacks_of

SCRIPT = """
    import json, os, sys, time
    from pathlib import Path
    from trainlib import Checkpoint, RunConfig, session, tune

    def train_func(config):
        checkpoint = session.get_checkpoint()
        start = checkpoint.to_dict()["epoch"] + 1 if checkpoint else 0
        folder = Path(config["folder"])
        with open(folder / "started", "a") as file:
            file.write(f"{config['x']} {start} {os.getpid()}\\n")
        for epoch in range(start, 6):
            session.report({"loss": config["x"] + 1 / (epoch + 1), "start": start},
                           checkpoint=Checkpoint.from_dict({"epoch": epoch}))
            pause = float((folder / "pause").read_text())  # a space that changes is another sweep
            if pause > 1:
                (folder / f"paused-{config['x']}").touch()
            time.sleep(pause)

    if __name__ == "__main__":
        name, folder, pause = sys.argv[1:]
        (Path(folder) / "pause").write_text(pause)
        results = tune.Tuner(
            train_func,
            param_space={"x": tune.grid_search([0, 1, 2, 3, 4]), "folder": folder,
                         "drawn": tune.uniform(0, 1)},
            tune_config=tune.TuneConfig(metric="loss", mode="min", search_alg="tpe", max_concurrent_trials=2),
            run_config=RunConfig(name=name),
        ).fit()
        assert not results.errors, results.errors
        print(json.dumps({
            "run_id": results.run_id, "losses": [result.metrics["loss"] for result in results],
            "x": [result.config["x"] for result in results], "starts": [result.metrics["start"] for result in results],
            "iterations": [len(result.metrics_dataframe) for result in results],
        }))
"""


def started(folder):
    path = folder / "started"
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_a_whole_sweep_cleanly_and_it_goes_on(
    driver, run_here, tmp_path, newest_run, registry, flow_state, number
):
    name = f"sweep-{number.name}-{os.getpid()}"
    own = number is signal.SIGTERM
    process = driver(SCRIPT, name, str(tmp_path), "30", own_server=own, own_ray=own)
    process.wait_for(lambda: len(started(tmp_path)) == 2)
    time.sleep(1)
    stacks = dict(stacks_of(name))
    assert len(stacks) == 2, "of each trial that runs"
    for text in stacks.values():
        assert "time.sleep(pause)" in text.partition("\nThread ")[0], text

    sent = time.monotonic()
    process.process.send_signal(number)
    code = process.wait(timeout=20)
    took = time.monotonic() - sent

    assert code != 0
    assert took < 10, f"it took {took:.1f} s:\n{process.output}"
    parent = newest_run(name)
    assert parent.info.status == "KILLED"
    assert [run.info.status for run in children(registry, parent.info.run_id)] == ["KILLED", "KILLED"]
    assert flow_state(parent.data.tags["trainlib.flow_run_id"]) in ("CRASHED", "CANCELLED")
    for _, _, pid in started(tmp_path):
        wait_until_dead(pid)
    assert process.output.count("Traceback") <= 1, process.output
    assert "/prefect/" not in process.output, process.output

    if own:
        outcome = run_here(SCRIPT.replace("[0, 1, 2, 3, 4]", "[0, 1]"), name, str(tmp_path), "0")
        assert outcome["run_id"] != parent.info.run_id, "another space is another sweep"
        assert registry.get_run(parent.info.run_id).info.status == "KILLED"
    else:
        outcome = run_here(SCRIPT, name, str(tmp_path), "0")
        assert outcome["run_id"] == parent.info.run_id
    assert outcome["x"] == ([0, 1] if own else [0, 1, 2, 3, 4])


@pytest.mark.alone
def test_a_cancelled_sweep_leaves_no_worker_and_no_reservation(tmp_path):
    def train_func(config):
        session.report({"loss": 1.0})
        (config["folder"] / f"started-{config['x']}").touch()
        time.sleep(120)

    def interrupt():
        while len(list(tmp_path.glob("started-*"))) < 2:
            time.sleep(0.05)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    sent: list[float] = []
    # Whoever runs the tests in the background makes them ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            tune.Tuner(
                train_func,
                param_space={"x": tune.grid_search([0, 1, 2, 3]), "folder": tmp_path},
                run_config=RunConfig(verbose=0),
            ).fit()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - sent[0] < 10
    assert_nothing_left_behind()


RESTORE = """
    import json, sys
    from trainlib.tune import Tuner

    if __name__ == "__main__":
        tuner = Tuner.restore(sys.argv[1])
        before = len(tuner.get_results())
        results = tuner.fit()
        print(json.dumps({"run_id": results.run_id, "x": [result.config["x"] for result in results], "before": before}))
"""


def test_a_sweep_whose_process_was_killed_is_continued(
    driver, run_here, tmp_path, newest_run, registry, flow_state, curve
):
    name = f"sweep-killed-{os.getpid()}"
    first = driver(SCRIPT, name, str(tmp_path), "0.5")
    first.wait_for(lambda: len(started(tmp_path)) >= 4)
    # No other trial is to begin meanwhile: it would be killed before it is recorded.
    (tmp_path / "pause").write_text("60")
    first.wait_for(lambda: len(list(tmp_path.glob("paused-*"))) == 2)
    parent = newest_run(name)
    first.wait_for(lambda: all("drawn" in run.data.params for run in children(registry, parent.info.run_id)))

    def can_be_continued() -> bool:
        """Whether some trials have ended, and all that run have saved something."""
        runs = children(registry, parent.info.run_id)
        unended = [run for run in runs if run.info.status == "RUNNING"]
        return len(unended) < len(runs) and all(map(has_checkpoint, unended))

    def has_checkpoint(run) -> bool:
        models = registry.search_logged_models(
            [run.info.experiment_id], filter_string=f"source_run_id = '{run.info.run_id}'"
        )
        return any(str(model.status) == "READY" for model in models)

    first.wait_for(can_be_continued)
    first.process.kill()
    first.process.wait()
    before = started(tmp_path)
    for _, _, pid in before:
        if is_alive(pid):
            wait_until_dead(pid)
    finished = [run for run in children(registry, parent.info.run_id) if run.info.status == "FINISHED"]
    running = [run for run in children(registry, parent.info.run_id) if run.info.status == "RUNNING"]
    assert finished
    assert running
    drawn = {run.info.run_id: run.data.params["drawn"] for run in finished + running}

    outcome = run_here(SCRIPT, name, str(tmp_path), "0.1")
    assert outcome["run_id"] == parent.info.run_id
    assert outcome["x"] == [0, 1, 2, 3, 4], "the total stays what was asked for"
    assert outcome["losses"] == [x + 1 / 6 for x in range(5)]
    assert outcome["iterations"] == [6] * 5
    again = {x for x, _, _ in started(tmp_path)[len(before) :]}
    done = {int(run.data.params["x"]) for run in finished}
    assert not again & done, "finished trials are not run again"
    resumed = [int(run.data.params["x"]) for run in running]
    assert any(start > 0 for x, start, _ in started(tmp_path)[len(before) :] if x in resumed), "running ones resume"
    runs = children(registry, newest_run(name).info.run_id)
    assert {run.info.status for run in runs} == {"FINISHED"}
    assert len(runs) == 5
    assert {run.info.run_id: run.data.params["drawn"] for run in runs}.items() >= drawn.items()
    for run in running:
        assert [step for step, _ in curve(run.info.run_id, "loss")] == [1, 2, 3, 4, 5, 6]
    assert flow_state(parent.data.tags["trainlib.flow_run_id"]) == "CRASHED"

    assert run_here(RESTORE, name) == {"run_id": parent.info.run_id, "x": [0, 1, 2, 3, 4], "before": 5}
