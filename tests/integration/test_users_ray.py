"""The user shuts Ray down and starts it again, as notebooks and test suites do, and the process lives."""

from __future__ import annotations

SCRIPT = """
    import time
    import ray
    from trainlib import DataParallelTrainer, RunConfig, session

    def loop():
        session.report({"step": 1})

    def refused():
        try:  # told only when Ray is already starting in the background
            DataParallelTrainer(loop, run_config=RunConfig(storage_path="/tmp/elsewhere", experiment_name="taken")).fit()
        except ValueError as error:
            assert "storage_path" in str(error), error
        else:
            raise AssertionError("it should have been refused")

    DataParallelTrainer(loop, run_config=RunConfig(experiment_name="taken")).fit()
    ray.shutdown()
    refused()
    ray.shutdown()
    time.sleep(2)
    assert not ray.is_initialized(), "nobody has started another one"
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    refused()
    assert DataParallelTrainer(loop).fit().metrics["step"] == 1
    ray.shutdown()
    assert DataParallelTrainer(loop).fit().metrics["step"] == 1
    time.sleep(3)  # as long as a thread that still used the old one would need to bring the process down
    print("alive", flush=True)
"""


def test_ray_can_be_shut_down_and_started_between_trainings(driver):
    # Each Ray would start a process for every CPU in advance, of which the trainings here use one.
    process = driver(SCRIPT, own_ray=True, RAY_prestart_worker_first_driver="0")
    assert process.wait(180) == 0, process.output
    assert process.output.strip().endswith("alive")
