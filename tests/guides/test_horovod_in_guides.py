"""Guide sections, under their Horovod tabs: creating and customizing a trainer, a function for its Ray executor."""

import pytest


def test_a_trainer_joins_its_workers_into_one_job(run_example):
    result = run_example("horovod_creating_a_trainer").result
    assert result.metrics["size"] == 2
    assert result.returned == [(0, 0), (1, 1)]


def test_the_guides_spelling_of_the_argument_customizes_the_job(run_example):
    result = run_example("horovod_customizing_the_backend").result
    assert result.metrics["size"] == 2
    assert result.returned == ["60", "60"]


def test_a_function_for_horovods_ray_executor_runs_as_it_is(run_example):
    first, second = run_example("horovod_executor_function").result.returned
    assert first == second, "the averaged loss, the broadcast setting and the weights"
    assert first[1] == pytest.approx(0.02)
