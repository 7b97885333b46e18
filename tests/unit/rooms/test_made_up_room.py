"""Adding a framework is declaring a room and naming it in the table: everything else follows from that."""

from __future__ import annotations

import sys

import cloudpickle
import pytest
from pydantic import TypeAdapter, ValidationError

from tests.unit.rooms.made_up import BOOSTED, ROOM, BoostedTrainer, MadeUpConfig, MadeUpTrainer, boost
from trainlib import _rooms as rooms
from trainlib import sgd, tune
from trainlib._trainer_form import TrainerChoice
from trainlib._training.opening import fingerprint_of
from trainlib.flows import TrainSpec
from trainlib.torch import TorchConfig
from trainlib.tune import Tuner


def train_func(config) -> None:
    pass


@pytest.fixture(autouse=True)
def made_up_room(monkeypatch):
    """The one line of the table, and the packages installed."""
    monkeypatch.setitem(rooms.ROOMS, "made-up", "tests.unit.rooms.made_up")
    monkeypatch.setattr(rooms, "find_spec", lambda package: "found")


def test_a_form_offers_it():
    choice = TypeAdapter(TrainerChoice)
    schema = choice.json_schema()
    assert {"$ref": "#/$defs/MadeUpTrainerForm"} in schema["anyOf"]
    assert schema["$defs"]["MadeUpConfig"]["properties"]["speed"]["default"] == 1
    form = choice.validate_python(
        {"kind": "made-up", "train_loop": "trainlib.demo:train_digits", "made_up_config": {"speed": 7}}
    )
    trainer = TrainSpec(trainer=form).build()
    assert type(trainer) is MadeUpTrainer
    assert trainer.backend_config.speed == 7
    assert TrainSpec.of(trainer).trainer.model_dump() == form.model_dump()
    with pytest.raises(ValidationError, match=r"'jax'.*'made-up'"):
        choice.validate_python({"kind": "jax", "train_loop": "trainlib.demo:train_digits"})


@pytest.fixture
def boosted_room(monkeypatch):
    """A room whose trainer brings its own training function."""
    monkeypatch.setitem(rooms.ROOMS, "boosted", __name__)
    monkeypatch.setattr(sys.modules[__name__], "ROOM", BOOSTED)


def test_a_trainer_without_a_training_function_has_a_form_of_its_own(boosted_room):
    choice = TypeAdapter(TrainerChoice)
    fields = choice.json_schema()["$defs"]["BoostedForm"]["properties"]
    assert set(fields) == {"kind", "params", "label_column"}
    form = choice.validate_python({"kind": "boosted", "params": {"eta": 0.3}})
    trainer = TrainSpec(trainer=form.with_target("income"), scaling_config={"num_workers": 2}).build()
    assert type(trainer) is BoostedTrainer
    assert trainer.train_loop_config == {"params": {"eta": 0.3}, "label_column": "income"}
    assert TrainSpec.of(trainer).trainer.model_dump() == form.with_target("income").model_dump()
    by_function = TrainSpec.of(BoostedTrainer(train_func, train_loop_config={"depth": 2})).trainer.model_dump()
    assert by_function["train_loop"].endswith(":train_func")
    assert by_function["train_loop_config"] == {"depth": 2}


def test_raysgd_takes_its_name_and_its_settings():
    by_name = sgd.Trainer("made-up").to_tune_trainable(train_func).trainer
    assert type(by_name) is MadeUpTrainer
    by_settings = sgd.Trainer(MadeUpConfig(speed=3)).to_tune_trainable(train_func).trainer
    assert type(by_settings) is MadeUpTrainer
    assert by_settings.backend_config.speed == 3
    with pytest.raises(ValueError, match=r"pass 'torch', .*'made-up', or settings"):
        sgd.Trainer("jax")


def test_both_spellings_of_its_settings_are_one_argument():
    config = MadeUpConfig(speed=2)
    assert MadeUpTrainer(train_func, made_up_config=config).backend_config is config
    assert MadeUpTrainer(train_func, made_up_backend=config).backend_config is config
    with pytest.raises(ValueError, match="made_up_config and made_up_backend are the same argument: pass one of them"):
        MadeUpTrainer(train_func, made_up_config=config, made_up_backend=config)
    with pytest.raises(TypeError, match="made_up_config is a TorchConfig: pass a MadeUpConfig"):
        MadeUpTrainer(train_func, made_up_config=TorchConfig())


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(rooms, "find_spec", lambda package: None if package == "made_up_package" else "found")
    message = r"MadeUpTrainer needs made_up_package: pip install 'trainlib\[made-up\]'"
    for make in (lambda: MadeUpTrainer(train_func), lambda: sgd.Trainer("made-up")):
        with pytest.raises(ImportError, match=message):
            make()


def test_a_sweep_tries_its_settings():
    trainer = MadeUpTrainer(train_func, made_up_config=MadeUpConfig(speed=1))
    plan = Tuner(trainer, param_space={"made_up_config": {"speed": tune.grid_search([5, 6])}}).plan
    trial = plan.trainable.trainer({"made_up_config": {"speed": 6}}, plan.run_fields)
    assert type(trial) is MadeUpTrainer
    assert trial.backend_config.speed == 6
    assert trainer.backend_config.speed == 1


def test_its_declaration_gives_its_name():
    assert ROOM.name == "made-up"
    assert rooms.load("made-up") is ROOM
    assert rooms.room_of(MadeUpConfig()) is ROOM
    assert "made-up" in rooms.choices()


# -- a trainer that brings its training function: its own arguments go wherever a config goes ---------------


def digest_of(trainer):
    return fingerprint_of(trainer, {}).config


def test_its_own_arguments_survive_copies_and_other_processes(boosted_room):
    trainer = BoostedTrainer(params={"eta": 0.3, "depth": 6}, label_column="income")
    assert trainer.train_loop_per_worker is boost
    copied = trainer.copy_with(label_column="age")
    assert type(copied) is BoostedTrainer
    assert copied.train_loop_config == {"params": {"eta": 0.3, "depth": 6}, "label_column": "age"}
    assert trainer.train_loop_config["label_column"] == "income"

    saved = cloudpickle.loads(trainer.settings.dumps()).unpacked()
    assert BoostedTrainer.from_settings(saved).arguments() == trainer.arguments()
    assert digest_of(BoostedTrainer.from_settings(saved)) == digest_of(trainer)
    assert digest_of(trainer.copy_with(params={"eta": 0.4, "depth": 6})) != digest_of(trainer)


def test_its_secrets_are_not_saved_and_have_to_be_given_again(boosted_room):
    trainer = BoostedTrainer(params={"api_key": "sk-1"}, label_column="income")
    saved = cloudpickle.loads(trainer.settings.dumps())
    with pytest.raises(
        ValueError, match=r"params\['api_key'\] was not saved, being secret. Pass the whole params again"
    ):
        saved.unpacked()
    again = BoostedTrainer.from_settings(saved.unpacked(["params"]), params={"api_key": "sk-1"})
    assert again.arguments() == trainer.arguments()


def test_a_sweep_tries_its_own_arguments(boosted_room):
    trainer = BoostedTrainer(params={"eta": 0.3, "depth": 6}, label_column="income")
    plan = Tuner(trainer, param_space={"params": {"eta": tune.grid_search([0.1, 0.2])}}).plan
    trial = plan.trainable.trainer({"params": {"eta": 0.2}}, plan.run_fields)
    assert trial.train_loop_config == {"params": {"eta": 0.2, "depth": 6}, "label_column": "income"}
    with pytest.raises(ValueError, match=r"BoostedTrainer has no such setting. The settings are .*label_column"):
        Tuner(trainer, param_space={"eta": tune.grid_search([0.1])}).plan  # noqa: B018


def test_it_takes_a_training_function_or_its_own_arguments(boosted_room):
    with pytest.raises(ValueError, match=r"a training function and params. The function itself says how to train"):
        BoostedTrainer(train_func, params={"eta": 0.3})
    with pytest.raises(ValueError, match="a train_loop_config, but no training function that is called with it"):
        BoostedTrainer(train_loop_config={"eta": 0.3})
    by_function = BoostedTrainer(train_func, train_loop_config={"eta": 0.3})
    assert by_function.copy_with(train_loop_config={"eta": 0.4}).train_loop_config == {"eta": 0.4}
    assert "params" not in by_function.arguments()


def test_functions_among_its_own_arguments_are_known_to_whoever_has_to_allow_them(boosted_room):
    assert BoostedTrainer(params={}, objective=train_func).settings.users_functions == [train_func]
    assert BoostedTrainer(train_func).settings.users_functions == [train_func]
