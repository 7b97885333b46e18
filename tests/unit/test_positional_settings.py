"""Settings are written as in the guides: by position, with the names of their time; and they show only what was changed."""

from __future__ import annotations

import copy
import pickle
import warnings

import pytest
from pydantic import ValidationError

from trainlib import CheckpointConfig, DataParallelTrainer, DivergenceConfig, FailureConfig, RunConfig, ScalingConfig
from trainlib.torch import TorchConfig
from trainlib.tune import TuneConfig, grid_search


def stop(trial_id, result):
    return True


@pytest.mark.parametrize(
    ("by_position", "by_name"),
    [
        (ScalingConfig(None, 2, False, {"CPU": 1}, "SPREAD"), {"num_workers": 2, "placement_strategy": "SPREAD"}),
        (ScalingConfig({"CPU": 1}, num_workers=3), {"trainer_resources": {"CPU": 1}, "num_workers": 3}),
        (CheckpointConfig(2, "loss", "min"), {"num_to_keep": 2, "checkpoint_score_order": "min"}),
        (CheckpointConfig(2, "loss", "min", 0, False), {"checkpoint_score_attribute": "loss"}),
        (FailureConfig(3, True), {"max_failures": 3, "fail_fast": True}),
        (TorchConfig("gloo", "tcp", 60), {"backend": "gloo", "init_method": "tcp", "timeout_s": 60}),
        (TuneConfig("max", "accuracy", "tpe", "asha", 5, 2, 60.0), {"mode": "max", "num_samples": 5}),
        (
            RunConfig("digits", "/mnt", None, stop, FailureConfig(1), None, CheckpointConfig(2), None, 3),
            {"name": "digits", "storage_path": "/mnt", "stop": stop, "verbose": 3, "failure_config": FailureConfig(1)},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arguments_have_the_places_of_the_guides_dataclasses(by_position, by_name):
    assert {name: getattr(by_position, name) for name in by_name} == by_name


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FailureConfig(1, True, 2), "FailureConfig got 3 arguments by position.*: max_failures, fail_fast"),
        (lambda: DivergenceConfig("loss"), "DivergenceConfig got 1 arguments by position.*: none"),
        (lambda: FailureConfig(1, max_failures=2), "FailureConfig got max_failures twice: by position and by name"),
        (lambda: RunConfig(local_dir="/a", storage_path="/b"), "the same setting: pass storage_path alone"),
    ],
)
def test_an_argument_without_a_place_is_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RunConfig(sync_config=object()), "RunConfig has no sync_config: checkpoints go to storage_path"),
        (lambda: RunConfig(progress_reporter=object()), "RunConfig has no progress_reporter: set verbose"),
        (lambda: RunConfig(verbose=4), "verbose"),
        (
            lambda: DataParallelTrainer(
                print, run_config=RunConfig(checkpoint_config=CheckpointConfig(2, checkpoint_frequency=5))
            ),
            "checkpoint_frequency, but the training function says when to save",
        ),
        (lambda: ScalingConfig(2), "The first place is that of trainer_resources: write num_workers=2"),
    ],
)
def test_what_is_not_needed_here_says_what_to_do_instead(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_local_dir_is_the_former_name_of_storage_path():
    with pytest.warns(
        DeprecationWarning, match=r"RunConfig\(local_dir=...\) is deprecated: write storage_path"
    ) as seen:
        config = RunConfig(name="digits", local_dir="/mnt/results")
    assert config.storage_path == "/mnt/results"
    assert seen[0].filename == __file__, "it points at the line that has to be changed"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RunConfig(storage_path="/mnt/results")


def test_a_place_may_hold_a_search_space():
    assert ScalingConfig(None, grid_search([1, 2])).num_workers == grid_search([1, 2])
    with pytest.raises(ValidationError):
        ScalingConfig(None, 0)


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        (ScalingConfig(), "ScalingConfig()"),
        (ScalingConfig(num_workers=2), "ScalingConfig(num_workers=2)"),
        (ScalingConfig(num_workers=1), "ScalingConfig()"),
        (TorchConfig(backend="gloo"), "TorchConfig(backend='gloo')"),
        (TuneConfig(num_samples=5), "TuneConfig(num_samples=5)"),
        (
            RunConfig(name="a", checkpoint_config=CheckpointConfig(num_to_keep=2)),
            "RunConfig(name='a', checkpoint_config=CheckpointConfig(num_to_keep=2))",
        ),
    ],
    ids=str,
)
def test_only_what_differs_from_the_default_is_shown(config, shown):
    assert repr(config) == shown
    assert repr(copy.deepcopy(config)) == repr(pickle.loads(pickle.dumps(config))) == shown
