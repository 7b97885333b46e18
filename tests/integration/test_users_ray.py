"""Ray is the user's: it is shut down and started again, as notebooks and test suites do, and may have been started with few CPUs."""

from __future__ import annotations

import tempfile

SCRIPT = """
    import time
    import ray
    from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, session

    def loop():
        session.report({"step": 1})

    def refused():
        try:  # told only when Ray is already starting in the background
            DataParallelTrainer(loop, run_config=RunConfig(storage_path="/tmp/elsewhere", experiment_name="taken")).fit()
        except ValueError as error:
            assert "storage_path" in str(error), error
        else:
            raise AssertionError("it should have been refused")

    def read(config):
        for epoch in range(2):
            for name in ("train", "validation"):
                rows = sum(len(batch["id"]) for batch in session.get_dataset_shard(name).iter_batches(batch_size=4))
            session.report({"rows": rows})

    def train_with_a_dataset():
        '''As Ray Data would have started it, this Ray has a CPU for each core, and none to spare.'''
        dataset = ray.data.range(100).map(lambda row: row)
        train, validation = dataset.train_test_split(test_size=0.2, shuffle=True)
        print("now it is read", flush=True)
        eight = ScalingConfig(num_workers=8)
        trainer = DataParallelTrainer(read, datasets={"train": train, "validation": validation}, scaling_config=eight)
        assert trainer.fit().metrics["rows"] == 20
        assert train.context.enable_progress_bars, "the user's own dataset keeps its settings"
        print("it was read", flush=True)

    DataParallelTrainer(loop, run_config=RunConfig(experiment_name="taken")).fit()
    ray.shutdown()
    refused()
    ray.shutdown()
    time.sleep(2)
    assert not ray.is_initialized(), "nobody has started another one"
    ray.init(address="local", num_cpus=2, include_dashboard=False)
    refused()
    train_with_a_dataset()
    assert DataParallelTrainer(loop).fit().metrics["step"] == 1
    ray.shutdown()
    assert DataParallelTrainer(loop).fit().metrics["step"] == 1
    ray_was_lost = []

    def lose_ray(trial_id, metrics):
        if metrics["step"] == 1 and not ray_was_lost:
            ray_was_lost.append(True)
            ray.shutdown()
            ray.put(1)  # Ray would connect again by itself, beside what the training does
        return False

    def steps():
        for step in (1, 2):
            session.report({"step": step})

    assert DataParallelTrainer(steps, run_config=RunConfig(stop=lose_ray)).fit().metrics["step"] == 2
    assert ray_was_lost
    ray.shutdown()
    assert ray.put(1), "Ray connects by itself again where nothing is trained"
    time.sleep(3)  # as long as a thread that still used the old one would need to bring the process down
    print("alive", flush=True)
"""


def test_ray_can_be_shut_down_between_and_during_trainings(driver):
    # With a folder of its own, it tries to join no Ray that somebody else has started or killed on this machine. And each Ray would
    # start a process for every CPU in advance, of which the trainings here use one.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        process = driver(SCRIPT, own_ray=True, RAY_prestart_worker_first_driver="0", RAY_TMPDIR=folder)
        assert process.wait() == 0, process.output
    assert process.output.strip().endswith("alive")
    before, _, after = process.output.partition("now it is read")
    assert "Running Dataset" not in before, "Ray Data logs no page of progress every few seconds"
    said = after.partition("it was read")[0].splitlines()
    assert [line for line in said if "Dataset" in line or "bars" in line] == [], (
        "and nothing at all while a training does"
    )
