"""Guide sections: callbacks, custom callbacks, distributed metrics."""

import ast
import struct
from pathlib import Path

from mlflow import MlflowClient
from tensorboardX.proto.event_pb2 import Event

from trainlib._registry.store import current_store

KEYS_OF_A_RESULT = {
    "trial_id",
    "experiment_id",
    "date",
    "timestamp",
    "pid",
    "hostname",
    "node_ip",
    "config",
    "epoch",
    "_timestamp",
    "_time_this_iter_s",
    "_training_iteration",
    "time_this_iter_s",
    "done",
    "timesteps_total",
    "episodes_total",
    "training_iteration",
    "time_total_s",
    "time_since_restore",
    "timesteps_since_restore",
    "iterations_since_restore",
    "warmup_time",
    "experiment_tag",
}


def test_a_custom_callback_sees_each_result(example):
    ran = example("custom_callback")
    results = ran.names["callback"].results
    assert [ast.literal_eval(line) for line in ran.lines] == results
    assert len(results) == 3
    assert results[-1].keys() == KEYS_OF_A_RESULT
    assert results[-1]["config"] == {}


def test_the_results_of_a_callback_are_not_changed_when_the_training_ends(example):
    results = example("custom_callback").names["callback"].results
    assert True not in [result.get("done") for result in results]


def test_the_last_result_of_a_trial_is_the_one_being_logged(example):
    """The guide's sample output is one result behind, and would never show the last one. Its text says otherwise."""
    results = example("custom_callback").names["callback"].results
    assert all(result.keys() == KEYS_OF_A_RESULT for result in results)
    assert [result["epoch"] for result in results] == [0, 1, 2]
    assert [result["training_iteration"] for result in results] == [1, 2, 3]
    assert [result["iterations_since_restore"] for result in results] == [1, 2, 3]
    assert len({result["trial_id"] for result in results}) == 1


def test_results_are_logged_to_mlflow_and_tensorboard(run_example):
    """Guide 001 includes ``mlflow_simple_example.py``."""
    result = run_example("mlflow_simple_example").result

    client = MlflowClient(current_store().uri)
    runs = client.search_runs([client.get_experiment_by_name("train_experiment").experiment_id])
    assert [run.info.run_id for run in runs] == [result.run_id]
    history = client.get_metric_history(result.run_id, "epoch")
    assert [(point.step, point.value) for point in history] == [(1, 0), (2, 1), (3, 2)]

    (file,) = Path(result.log_dir).rglob("events.out.tfevents.*")
    points = [
        (event.step, value.simple_value)
        for event in _events(file)
        for value in event.summary.value
        if value.tag == "ray/tune/epoch"
    ]
    assert points == [(1, 0.0), (2, 1.0), (3, 2.0)]


def _events(file):
    """The records of an event file: a length and its checksum, the event and its checksum."""
    data = file.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + length])
        data = data[12 + length + 4 :]


def test_torchmetrics_can_be_reported(run_example):
    ran = run_example("torchmetrics_accuracy")
    assert ran.lines == [str(ran.result.metrics["accuracy"])]
    assert round(ran.result.metrics["accuracy"] * 10, 6) in range(11)
