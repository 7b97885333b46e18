"""What workers need besides what their nodes have: what is accepted, and where its secrets do not go."""

from __future__ import annotations

import json
import pickle

import pytest
from pydantic import ValidationError

from trainlib import DataParallelTrainer, RunConfig, ScalingConfig
from trainlib.config import RuntimeEnv
from trainlib.flows.spec import TrainSpec
from trainlib.tune import Tuner


def train_func():
    pass


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"conda": "env.yml"}, "conda"),
        ({"pip": "no/such/requirements.txt"}, "no requirements file at 'no/such/requirements.txt'"),
        ({"pip": [" "]}, "leave it out"),
        ({"working_dir": "/no/such/folder"}, "there is no folder /no/such/folder"),
        ({"working_dir": "s3://bucket/folder"}, "not the URI of an archive (.zip,"),
        ({"working_dir": "ftp://host/code.zip"}, "that Ray can fetch (s3,"),
        ({"py_modules": ["/no/such.py"]}, "/no/such.py is neither a folder nor"),
        ({"env_vars": {"A=B": "1"}}, "'A=B' cannot be an environment variable"),
        ({"pip": ["--index-url=https://ada:hunter2@host/simple"]}, "has a password in it"),
    ],
)
@pytest.mark.parametrize("config", [ScalingConfig, RunConfig])
def test_what_cannot_be_used_is_refused_by_name(config, given, said):
    with pytest.raises(ValidationError) as refused:
        config(runtime_env=given)
    assert said in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_paths_hold_in_any_folder_and_requirements_are_read(tmp_path, monkeypatch):
    (tmp_path / "requirements.txt").write_text("# ours\neinops==0.8.1\n\n")
    (tmp_path / "library.py").touch()
    monkeypatch.chdir(tmp_path)
    env = RuntimeEnv(pip="requirements.txt", working_dir=".", py_modules=["library.py", "s3://bucket/more.whl"])
    assert env.pip == ["einops==0.8.1"]
    assert env.working_dir == str(tmp_path)
    assert env.py_modules == [str(tmp_path / "library.py"), "s3://bucket/more.whl"]


def test_what_scaling_config_sets_wins_and_the_rest_is_from_run_config():
    trainer = DataParallelTrainer(
        train_func,
        scaling_config=ScalingConfig(runtime_env={"pip": ["a"], "env_vars": {"X": "1"}}),
        run_config=RunConfig(runtime_env={"pip": ["b"], "env_vars": {"X": "2", "Y": "3"}, "excludes": ["*.bin"]}),
    )
    env = trainer.settings.gang.runtime_env
    assert env is not None
    assert env.as_dict() == {"pip": ["a"], "env_vars": {"X": "1", "Y": "3"}, "excludes": ["*.bin"]}


SECRET = {"env_vars": {"HF_TOKEN": "hf_hunter2", "MODE": "fast"}}


def test_a_secret_is_not_shown():
    with pytest.raises(ValidationError) as refused:
        ScalingConfig(runtime_env={**SECRET, "pip": 1})
    trainer = DataParallelTrainer(
        train_func, scaling_config={"runtime_env": SECRET}, run_config=RunConfig(runtime_env=SECRET)
    )
    spec = TrainSpec.of_inspected(trainer.inspect())
    shown = [
        str(refused.value),
        repr(trainer.settings),
        spec.model_dump_json(),
        json.dumps(spec.model_dump(mode="json")),
    ]
    assert [text for text in shown if "hunter2" in text] == []
    assert trainer.settings.gang.runtime_env.as_dict() == SECRET


def test_a_secret_is_not_saved_and_comes_from_the_environment_when_the_training_is_restored(monkeypatch):
    trainer = DataParallelTrainer(train_func, run_config=RunConfig(runtime_env={**SECRET, "pip": ["einops"]}))
    saved = trainer.settings.dumps()
    assert b"hunter2" not in saved
    with pytest.raises(ValueError, match=r"HF_TOKEN in runtime_env's env_vars was not saved, being secret\. Set it"):
        DataParallelTrainer.from_settings(pickle.loads(saved).unpacked())
    monkeypatch.setenv("HF_TOKEN", "hf_of_today")
    restored = DataParallelTrainer.from_settings(pickle.loads(saved).unpacked())
    assert restored.run_config.runtime_env is not None
    assert restored.run_config.runtime_env.as_dict() == {
        "pip": ["einops"],
        "env_vars": {"HF_TOKEN": "hf_of_today", "MODE": "fast"},
    }


@pytest.mark.parametrize("config", [{"runtime_env": SECRET}, RunConfig(runtime_env=SECRET)])
def test_the_trials_of_a_sweep_get_its_environment_and_nothing_saves_its_secrets(config):
    tuner = Tuner(DataParallelTrainer(train_func), param_space={"train_loop_config": {"lr": 0.1}}, run_config=config)
    assert b"hunter2" not in tuner._dumps()
    trial = tuner.plan.trainable.trainer({}, tuner.plan.run_fields)
    assert trial.settings.gang.runtime_env is not None
    assert trial.settings.gang.runtime_env.as_dict() == SECRET
