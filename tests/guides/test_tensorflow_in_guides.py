"""Guide sections, under their TensorFlow tabs: porting, creating and customizing a trainer, checkpoints."""

import numpy as np
import pytest


def test_tensorflow_backend_customizes_the_cluster(run_example):
    configs = run_example("tensorflow_customizing_the_backend").result.returned
    assert [config["task"] for config in configs] == [{"type": "worker", "index": rank} for rank in (0, 1)]
    workers = configs[0]["cluster"]["worker"]
    assert configs[1]["cluster"]["worker"] == workers
    ports = [int(address.rpartition(":")[2]) for address in workers]
    assert all(23400 <= port <= 23499 for port in ports)
    assert ports[0] != ports[1]


def test_a_ported_function_trains_like_one_process_on_the_global_batch(run_example):
    """Guide 003 includes ``tf_starter.py``."""
    ran = run_example("tf_starter")
    assert ran.result.returned[0] == ran.result.returned[1]
    replicas, trained = ran.result.returned[0]
    assert replicas == 2

    features = np.arange(64, dtype="float32").reshape(16, 4) / 64
    targets = features.sum(1, keepdims=True)
    weights, bias = np.zeros((4, 1)), np.zeros(1)
    for _ in range(5):
        error = features @ weights + bias - targets
        weights, bias = weights - 0.1 * 2 / 16 * features.T @ error, bias - 0.1 * 2 / 16 * error.sum(0)
    np.testing.assert_allclose(trained[0], weights, rtol=1e-4)
    assert len(ran.result.metrics_dataframe) == 5


def test_the_last_checkpoint_is_the_dict_that_was_saved(run_example):
    ran = run_example("tensorflow_saving_checkpoints")
    saved = ran.result.checkpoint.to_dict()
    assert list(saved) == ["epoch", "model_weights", "_timestamp", "_preprocessor", "_current_checkpoint_id"]
    assert (saved["epoch"], saved["_current_checkpoint_id"]) == (4, 4)
    assert [weights.shape for weights in saved["model_weights"]] == [(4, 1), (1,)]
    assert ran.printed.rstrip().endswith(str(saved))


def test_training_goes_on_from_the_checkpoint_it_is_given(run_example):
    ran = run_example("tensorflow_loading_checkpoints")
    saved = ran.result.checkpoint.to_dict()
    assert (saved["epoch"], saved["_current_checkpoint_id"]) == (4, 3)
    assert ran.result.metrics["training_iteration"] == 3
    first = ran.names["trainer"].resume_from_checkpoint.to_dict()
    assert first["epoch"] == 1
    # Adam moves a weight by about 0.001 per step, so 15 steps stay close to where the first training ended.
    assert saved["model_weights"][0] == pytest.approx(first["model_weights"][0], abs=0.03)
    assert not np.array_equal(saved["model_weights"][0], first["model_weights"][0])
