"""Search spaces: the configs of trials, with any sampler."""

from __future__ import annotations

import pytest
from ray import tune as ray_tune

from trainlib import DataParallelTrainer, RunConfig, ScalingConfig, tune
from trainlib.tune._domains import Categorical, Float, Integer, Normal
from trainlib.tune._sample import as_domain
from trainlib.tune._search import Search, make_sampler
from trainlib.tune._space import Space
from trainlib.tune._trainable import Trainable


def configs(tree, count, **search):
    asked = Search(Space(tree), **{"sampler": "random", "mode": "min", "seed": 0, **search})
    return [asked.ask(number)[1] for number in range(count)]


def test_a_grid_has_every_combination_in_order_and_repeats():
    found = configs({"a": tune.grid_search([1, 2]), "b": {"c": tune.grid_search(["x", "y", "z"])}}, 7)
    pairs = [(config["a"], config["b"]["c"]) for config in found]
    assert pairs == [(1, "x"), (1, "y"), (1, "z"), (2, "x"), (2, "y"), (2, "z"), (1, "x")]


def test_values_are_within_their_domains():
    space = {
        "u": tune.uniform(2, 3),
        "q": tune.quniform(0, 1, 0.25),
        "lu": tune.loguniform(1e-4, 1e-2),
        "i": tune.randint(1, 4),
        "li": tune.lograndint(1, 1000),
        "qi": tune.qrandint(16, 64, 16),
        "n": tune.randn(100, 0.001),
        "c": tune.choice(["a", None, 3]),
    }
    found = configs(space, 60)
    assert all(2 <= config["u"] <= 3 for config in found)
    assert {config["q"] for config in found} == {0, 0.25, 0.5, 0.75, 1}
    assert all(1e-4 <= config["lu"] <= 1e-2 for config in found)
    assert sum(config["lu"] < 1e-3 for config in found) > 15, "each order of magnitude alike"
    assert {config["i"] for config in found} == {1, 2, 3}
    assert all(isinstance(config["li"], int) and 1 <= config["li"] < 1000 for config in found)
    assert {config["qi"] for config in found} == {16, 32, 48, 64}
    assert all(abs(config["n"] - 100) < 0.01 for config in found)
    assert {config["c"] for config in found} == {"a", None, 3}


def test_spaces_work_at_any_depth_also_in_lists_and_in_the_values_of_a_choice():
    space = {
        "layers": [tune.randint(1, 3), {"width": tune.choice([8])}],
        "optimizer": tune.choice([{"name": "sgd", "momentum": tune.uniform(0.5, 0.9)}, {"name": "adam"}]),
    }
    found = configs(space, 20)
    assert all(config["layers"][0] in (1, 2) and config["layers"][1] == {"width": 8} for config in found)
    sgd = [config["optimizer"] for config in found if config["optimizer"]["name"] == "sgd"]
    adam = [config["optimizer"] for config in found if config["optimizer"]["name"] == "adam"]
    assert sgd
    assert all(0.5 <= one["momentum"] <= 0.9 for one in sgd)
    assert adam
    assert all(one == {"name": "adam"} for one in adam)


@pytest.mark.parametrize(
    "look",
    [
        lambda config: config["a"] * 10,
        lambda config: config.a * 10,
        lambda spec: spec.config.a * 10,
        lambda spec: spec["config"]["a"] * 10,
    ],
)
def test_functions_see_the_config_in_every_spelling(look):
    (config,) = configs({"b": tune.sample_from(look), "a": tune.choice([4])}, 1)
    assert config == {"b": 40, "a": 4}


def test_functions_see_the_values_of_other_functions():
    space = {
        "c": tune.sample_from(lambda config: config["inner"]["b"] + 1),
        "inner": {"b": tune.sample_from(lambda config: config["a"] + 1)},
        "a": 1,
        "d": tune.sample_from(lambda: 7),
    }
    assert configs(space, 1) == [{"c": 3, "inner": {"b": 2}, "a": 1, "d": 7}]


def test_a_point_restores_its_config_without_choosing_or_computing():
    calls = []
    space = Space({"a": tune.uniform(0, 1), "b": tune.sample_from(lambda config: calls.append(1) or config["a"])})
    point, config = Search(space, "random", mode="min", seed=0).ask(0)
    assert space.config_of(point) == config
    assert calls == [1]


def test_rays_own_objects_are_accepted():
    assert as_domain(ray_tune.uniform(0, 1)) == Float(0, 1)
    assert as_domain(ray_tune.quniform(0, 1, 0.5)) == Float(0, 1, q=0.5)
    assert as_domain(ray_tune.loguniform(0.1, 1)) == Float(0.1, 1, log=True)
    assert as_domain(ray_tune.randint(1, 5)) == Integer(1, 5)
    assert as_domain(ray_tune.lograndint(1, 5)) == Integer(1, 5, log=True)
    assert as_domain(ray_tune.randn(1, 2)) == Normal(1, 2)
    assert as_domain(ray_tune.choice([1, 2])) == Categorical((1, 2))
    found = configs({"a": ray_tune.grid_search([3]), "b": ray_tune.sample_from(lambda spec: spec.config.a)}, 1)
    assert found == [{"a": 3, "b": 3}]


def test_a_config_object_may_have_spaces_in_it():
    space = {"scaling_config": ScalingConfig(num_workers=tune.grid_search([1, 2]), use_gpu=False)}
    found = configs(space, 2)
    assert [config["scaling_config"] for config in found] == [
        ScalingConfig(num_workers=1, use_gpu=False),
        ScalingConfig(num_workers=2, use_gpu=False),
    ]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tune.uniform(1, 1), "the range from 1 to 1 is empty"),
        (lambda: tune.loguniform(0, 1), "cannot start at 0"),
        (lambda: tune.uniform(0, float("inf")), "inf is not a valid bound"),
        (lambda: tune.quniform(0, 1, 0.3), "1 is not a multiple of the step 0.3"),
        (lambda: tune.randint(1.5, 3), "1.5 is not an integer"),
        (lambda: tune.choice([]), r"choice\(\) got no values"),
        (lambda: tune.choice("relu"), r"choice\(\) got 'relu': pass a list"),
        (lambda: tune.randn(0, 0), "sd is 0"),
        (lambda: tune.sample_from(3), r"sample_from\(\) got 3"),
        (lambda: tune.sample_from(lambda a, b: 1), "it needs more"),
    ],
)
def test_spaces_that_make_no_sense(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("name", ["random", "tpe", "cmaes", "gp"])
def test_samplers_learn_also_from_the_trials_of_an_earlier_process(name):
    space = Space({"x": tune.uniform(-3, 3), "y": tune.uniform(-3, 3), "kind": tune.choice(["a", "b"])})
    search = Search(space, name, mode="min", seed=1)
    told = []
    for number in range(14):
        point, config = search.ask(number)
        value = config["x"] ** 2 + config["y"] ** 2
        search.record_score(point, value)
        told.append((point, value))
    again = Search(space, name, mode="min", seed=1)
    for point, value in told:
        again.record_score(point, value)
    assert [trial.value for trial in again.study.trials] == [trial.value for trial in search.study.trials]
    assert again.study.best_params == search.study.best_params
    again.ask(14)


def test_failed_and_stopped_trials_are_recorded_as_such():
    search = Search(Space({"x": tune.uniform(0, 1)}), "tpe", mode="max", seed=0)
    for number, outcome in enumerate([(None, False), (float("nan"), False), (0.5, True), (0.7, False)]):
        search.record_score(search.ask(number)[0], outcome[0], iteration=3, stopped=outcome[1])
    assert [trial.state.name for trial in search.study.trials] == ["FAIL", "FAIL", "PRUNED", "COMPLETE"]
    assert search.study.best_value == 0.7


def test_any_optuna_sampler_is_used_as_it_is():
    from optuna.samplers import QMCSampler

    sampler = QMCSampler(seed=1)
    assert make_sampler(sampler, seed=None) is sampler
    assert tune.TuneConfig(search_alg=sampler, metric="loss", mode="min").search_alg is sampler


def test_functions_that_need_each_other_are_an_error():
    space = {"a": tune.sample_from(lambda config: config["b"]), "b": tune.sample_from(lambda config: config["a"])}
    with pytest.raises(ValueError, match="the functions of sample_from need each other: a needs b needs a"):
        configs(space, 1)


@pytest.mark.parametrize("over_trainers", [False, True])
def test_functions_see_the_space_as_it_was_written(over_trainers):
    def train_func(config):
        pass

    if over_trainers:
        given, wrap = DataParallelTrainer(train_func), lambda inner: {"train_loop_config": inner}
        twice = tune.sample_from(lambda spec: spec.config["train_loop_config"]["a"] * 2)
    else:
        given, wrap = train_func, lambda inner: inner
        twice = tune.sample_from(lambda spec: spec.config.a * 2)
    trainable = Trainable(given)
    space = trainable.space(wrap({"a": tune.choice([4]), "b": twice}))
    _, tree = Search(space, "random", mode="min", seed=0).ask(0)
    assert trainable.config(tree) == wrap({"a": 4, "b": 8})
    assert trainable.trainer(tree, RunConfig()).train_loop_config == {"a": 4, "b": 8}


def test_a_restored_sweep_does_not_choose_the_same_points_again():
    space = Space({"x": tune.uniform(0, 1)})
    first = Search(space, "random", mode="min", seed=4)
    before = [first.ask(number)[1]["x"] for number in range(3)]
    second = Search(space, "random", mode="min", seed=4)
    second.reseed_after(3)
    assert second.ask(3)[1]["x"] not in before


def test_cma_es_restarts_from_where_trials_were_good():
    space = Space({"x": tune.uniform(-10, 10), "y": tune.uniform(-10, 10)})

    def tried(search, numbers):
        losses = []
        for number in numbers:
            point, config = search.ask(number)
            losses.append((config["x"] - 3) ** 2 + (config["y"] + 2) ** 2)
            search.record_score(point, losses[-1])
            points.append((point, losses[-1]))
        return losses

    points = []
    tried(Search(space, "cmaes", mode="min", seed=0), range(60))
    again = Search(space, "cmaes", mode="min", seed=0)
    for point, loss in list(points):
        again.record_score(point, loss)
    again.reseed_after(60)
    losses = tried(again, range(60, 72))
    assert sum(losses) / len(losses) < 10, "not anywhere in the space, where a loss is 67 on average"
