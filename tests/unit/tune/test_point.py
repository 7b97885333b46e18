"""Points of a search space, and how they are stored."""

from __future__ import annotations

import base64
import pickle
import zlib

import numpy as np
import pytest

from trainlib import tune
from trainlib.tune._point import Point
from trainlib.tune._space import Space


class Net:
    """An object that JSON has no form for."""


def test_a_stored_point_is_the_same_point():
    point = Point(
        3,
        {"lr": 0.1, "act": None, "layers": 2, "bias": True, "name": "ü"},
        {"lr": '{"name": "FloatDistribution"}'},
        {"sizes": (1, [2, {"a": (3,), 4: None}])},
        {("train_loop_config", "lrs", 0): float("inf"), ("momentum",): 0.9},
    )
    assert Point.loads(point.dumps()) == point


def test_numbers_of_numpy_become_plain_ones():
    (value,) = Point.loads(Point(0, {}, computed={"n": np.float32(0.5)}).dumps()).computed.values()
    assert value == 0.5
    assert type(value) is float


def test_objects_of_sample_from_are_computed_again():
    space = Space({"net": tune.sample_from(lambda config: Net())})
    _, computed = space.resolve(lambda name, domain: None)
    assert isinstance(space.config_of(Point.loads(Point(0, {}, computed=computed).dumps()))["net"], Net)


def test_secrets_that_were_computed_are_not_stored():
    space = Space({"password": tune.sample_from(lambda config: "correct horse"), "lr": 0.1})
    _, computed = space.resolve(lambda name, domain: None)
    stored = Point(0, {}, computed=computed).dumps()
    assert "correct horse" not in stored
    config = space.config_of(Point.loads(stored))
    assert config == {"password": "correct horse", "lr": 0.1}
    assert space.shown(config) == {"password": "********"}


def test_secrets_that_a_sampler_chooses_among_are_named_by_their_number():
    space = Space(
        {"db": {"password": tune.grid_search(["horse", "battery"])}, "key": tune.choice([{"api_key": "staple"}, {}])}
    )
    params = {name: domain.labels[0] for name, domain in space.domains.items()}
    stored = Point(0, params).dumps()
    assert not [secret for secret in ("horse", "battery", "staple") if secret in stored + space.fingerprint]
    assert space.config_of(Point.loads(stored)) == {"db": {"password": "horse"}, "key": {"api_key": "staple"}}


def test_an_object_that_was_not_stored_is_named():
    space = Space({"net": "small"})
    stored = Point(0, {}).with_changes({("net",): Net()}).dumps()
    with pytest.raises(ValueError, match=r"had set param_space\['net'\] to Net, an object that is not stored"):
        space.config_of(Point.loads(stored))


class Runs:
    """Runs code when it is unpickled."""

    ran = False

    def __reduce__(self):
        return setattr, (Runs, "ran", True)


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(zlib.compress(pickle.dumps(Runs()))).decode(),
        "",
        "[]",
        "3",
        "{}",
        '{"number": "x", "params": {}, "distributions": {}, "computed": {}, "changed": []}',
    ],
)
def test_whoever_writes_a_tag_runs_no_code(text):
    with pytest.raises(ValueError, match="is not the point of a trial"):
        Point.loads(text)
    assert not Runs.ran
