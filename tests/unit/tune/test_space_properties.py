"""What holds for any search space: every grid point has its turn, and a stored point gives its config again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainlib import tune
from trainlib.tune._point import Point
from trainlib.tune._search import Search
from trainlib.tune._space import Space

names = st.text("abc.[]/@ü", min_size=1, max_size=3)
values = st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.booleans() | st.none()
domains = (
    st.lists(values, min_size=1, max_size=3, unique_by=repr).map(tune.choice)
    | st.lists(values, min_size=1, max_size=3, unique_by=repr).map(tune.grid_search)
    | st.tuples(st.floats(0.001, 1.0), st.floats(2.0, 9.0)).map(lambda ends: tune.loguniform(*ends))
    | st.tuples(st.integers(-5, 0), st.integers(1, 5)).map(lambda ends: tune.randint(*ends))
    | st.lists(st.integers(), max_size=2).map(lambda drawn: tune.sample_from(lambda config: tuple(drawn)))
)
trees = st.dictionaries(
    names,
    st.recursive(domains | values, lambda inner: st.dictionaries(names, inner, max_size=2), max_leaves=4),
    max_size=3,
)


@given(trees)
def test_a_stored_point_gives_the_same_config(tree):
    space = Space(tree)
    search = Search(space, mode="max", sampler="random", seed=1)
    for number in range(3):
        point, config = search.ask(number)
        again = Point.loads(point.dumps())
        assert again == point
        assert space.config_of(again) == config


@given(trees)
def test_every_point_of_the_grid_has_its_turn(tree):
    space = Space(tree)
    points = [tuple(space.grid_params(number).items()) for number in range(space.grid_size)]
    assert len(set(map(repr, points))) == space.grid_size
