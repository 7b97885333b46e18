"""Guide section: fault tolerance."""

import re

import pytest

from trainlib import FailureConfig, TrainingFailedError


def test_a_killed_worker_is_a_retry_that_resumes_from_the_checkpoint(example):
    ran = example("fault_tolerance")
    result = ran.result

    assert ran.lines == ["4"]
    assert result.attempts == 2
    assert result.error is None
    table = result.metrics_dataframe
    assert table["epoch"].tolist() == [0, 1, 2, 3, 4]
    assert table["start_epoch"].tolist() == [0, 0, 0, 3, 3]
    saved = result.checkpoint.to_dict()
    assert saved["_current_checkpoint_id"] == 4
    assert saved["model_weights"]["bias"].item() == 4
    assert result.metrics["training_iteration"] == 5
    assert result.metrics["iterations_since_restore"] == 2


def test_without_max_failures_a_killed_worker_fails_the_training(example):
    trainer = example("fault_tolerance").names["trainer"]
    trainer.run_config.failure_config = FailureConfig()
    with pytest.raises(TrainingFailedError, match=re.escape("rank 1 (node")) as failed:
        trainer.fit()
    assert failed.value.rank == 1
    assert failed.value.attempt == 1
    assert not failed.value.retry
