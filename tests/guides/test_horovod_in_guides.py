"""Guide sections, under their Horovod tabs: creating and customizing a trainer, a function for its Ray executor."""

import pytest


def test_a_function_for_horovods_ray_executor_runs_as_it_is(run_example):
    """Guide 003 includes ``hvd_trainer.py``."""
    first, second = run_example("hvd_trainer").result.returned
    assert (first[:2], second[:2]) == ((0, 2), (1, 2))
    assert first[2:] == second[2:], "the averaged loss, the broadcast setting and the weights"
    assert first[3] == pytest.approx(0.02)


def test_the_guides_spelling_of_the_argument_customizes_the_job(run_example):
    result = run_example("horovod_customizing_the_backend").result
    assert result.metrics["size"] == 2
    assert result.returned == ["60", "60"]
