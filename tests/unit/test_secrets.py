"""What counts as a secret, and that it is not shown or stored."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.blocks.system import Secret
from pydantic import SecretStr

from trainlib import DataParallelTrainer, RunConfig
from trainlib._registry.params import flat, stored_params
from trainlib._secrets import MASK, HiddenSecret, SecretText, hidden_in, masked, masked_uri, without_secrets
from trainlib._training.opening import fingerprint_of
from trainlib.flows._shown import shown
from trainlib.flows.spec import TrainSpec

PASSWORD = "correct horse"


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "db_password",
        "DB_PASSWORD",
        "dbPassword",
        "passwords",
        "client-secret",
        "aws_secret_access_key",
        "api_key",
        "apiKey",
        "apikey",
        "private.key",
        "credentials",
        "hf_token",
    ],
)
def test_secrets_by_name(name):
    assert masked({name: PASSWORD}) == {name: MASK}
    assert masked({"nested": [{name: PASSWORD}]}) == {"nested": [{name: MASK}]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 5),
        ("token", 5),
        ("secretary", "Ada"),
        ("passwordless", True),
        ("use_password", True),
        ("password", None),
        ("password", ""),
        ("key", "a"),
        ("keyboard", "b"),
    ],
)
def test_what_is_no_secret(name, value):
    assert masked({name: value}) == {name: value}


@pytest.mark.parametrize(
    "value", [SecretStr(PASSWORD), Secret(value=PASSWORD), f"s3://ada:{PASSWORD.split()[0]}@host/x"]
)
def test_secrets_by_value(value):
    assert PASSWORD.split()[0] not in repr(masked({"setting": value}))
    assert list(hidden_in(without_secrets({"setting": value}))) == ["['setting']"]


@pytest.mark.parametrize("text", ["s3://bucket/x", "http://host:5000/", "mail ada@host", "12:30 @home", "x://a@host"])
def test_texts_without_a_password_stay(text):
    assert masked_uri(text) == text


@given(
    st.dictionaries(
        st.text(), st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner))
    )
)
def test_other_settings_stay_as_they_are(config):
    config = {f"setting {name}": value for name, value in config.items() if "token" not in name.lower()}
    assert masked(masked(config)) == masked(config)


def test_arrays_and_tables_stay_as_they_are():
    config = {"weights": np.zeros(3), "table": pd.DataFrame({"x": [1]}), "all": [np.ones(2)]}
    found = masked(config)
    assert found["weights"] is config["weights"]
    assert found["table"] is config["table"]
    assert found["all"][0] is config["all"][0]
    assert masked({"password": np.zeros(3)}) == {"password": MASK}


def train_func(config: dict) -> None:
    pass


CONFIG = {"lr": 0.1, "db": {"user": "ada", "password": PASSWORD}, "key": SecretStr(PASSWORD)}


def test_nothing_that_is_stored_has_the_secret():
    trainer = DataParallelTrainer(train_func, train_loop_config=CONFIG)
    assert trainer.train_loop_config == CONFIG
    stored = [
        *(param.value for param in stored_params(flat(CONFIG))),
        TrainSpec.of(trainer).model_dump_json(),
        repr(trainer.settings.dumps()),
        repr(fingerprint_of(trainer, {})),
    ]
    assert not [text for text in stored if "correct" in text]


def test_a_changed_password_is_no_other_training():
    one, other = (DataParallelTrainer(train_func, train_loop_config={"password": word, "lr": 1}) for word in ("a", "b"))
    assert fingerprint_of(one, {}) == fingerprint_of(other, {})


def test_restoring_asks_for_it_again():
    saved = cloudpickle.loads(DataParallelTrainer(train_func, train_loop_config=CONFIG).settings.dumps())
    with pytest.raises(
        ValueError, match=r"train_loop_config\['db'\]\['password'\], train_loop_config\['key'\] were not saved"
    ):
        saved.unpacked()
    assert saved.unpacked({"train_loop_config"}).datasets == {}


def test_a_password_in_the_path_of_the_storage_is_refused():
    with pytest.raises(ValueError, match="has a password in it, which would be stored"):
        RunConfig(storage_path="s3://key:word@bucket/runs")


def test_a_secret_that_is_a_uri_is_not_shown_at_all():
    assert masked({"webhook_secret": "https://hooks.example.org/abc"}) == {"webhook_secret": MASK}
    assert masked({"webhook": SecretText("https://hooks.example.org/abc")}) == {"webhook": MASK}


def test_a_secret_text_is_a_text_that_is_not_shown_or_saved():
    config = {"anything": SecretText(PASSWORD)}
    assert config["anything"] == cloudpickle.loads(cloudpickle.dumps(config))["anything"] == PASSWORD
    assert PASSWORD not in repr(config)
    assert masked(config) == shown(config) == {"anything": MASK}
    assert without_secrets(config) == {"anything": HiddenSecret()}
    assert isinstance(cloudpickle.loads(cloudpickle.dumps(config))["anything"], SecretText)
