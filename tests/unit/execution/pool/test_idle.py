"""Which idle workers are kept, for whom and for how long."""

from __future__ import annotations

from dataclasses import replace

from trainlib._execution.pool.idle import IdleWorkers, Kind, Limits

KIND = Kind("node", threads=1, state_module=None, session="session")


def test_the_one_that_came_last_is_taken_first():
    idle = IdleWorkers()
    idle.keep(KIND, ["first", "last"], now=0.0)
    assert [idle.take(KIND), idle.take(KIND), idle.take(KIND)] == ["last", "first", None]


def test_another_kind_is_not_taken():
    idle = IdleWorkers()
    idle.keep(replace(KIND, environment=(("TOKEN", "secret"),)), ["worker"], now=0.0)
    assert idle.take(replace(KIND, environment=(("TOKEN", "another"),))) is None
    assert idle.take(replace(KIND, environment=(("TOKEN", "secret"),), packages=1)) is None
    assert "secret" not in repr(replace(KIND, environment=(("TOKEN", "secret"),)))


def test_what_a_script_has_used_is_its_own():
    idle = IdleWorkers()
    idle.keep(KIND, ["for all"], now=0.0)
    idle.keep(KIND, ["used"], now=0.0, only_for="one")
    assert (idle.count(KIND, "one"), idle.count(KIND, "two")) == (2, 1)
    assert idle.take(KIND, "two") == "for all"
    assert idle.take(KIND, "two") is None
    assert idle.take_only_for("two") == {}
    assert idle.take_only_for("one") == {KIND: ["used"]}
    assert len(idle) == 0


def test_idle_for_too_long():
    idle = IdleWorkers()
    idle.keep(KIND, ["old"], now=0.0)
    idle.keep(KIND, ["new"], now=50.0)
    assert idle.take_expired(70.0, Limits(idle_s=60.0)) == ["old"]
    assert idle.actors == ["new"]


def test_none_expires_while_a_training_of_its_kind_runs():
    idle = IdleWorkers()
    idle.keep(KIND, ["worker"], now=0.0)
    assert idle.take_expired(100.0, Limits(idle_s=60.0), busy=[KIND]) == []
    assert idle.take_expired(130.0, Limits(idle_s=60.0)) == [], "it counts from the end of the training"
    assert idle.take_expired(161.0, Limits(idle_s=60.0)) == ["worker"]


def test_too_many_end_with_the_longest_idle_but_not_those_that_are_about_to_be_used():
    idle = IdleWorkers()
    idle.keep(KIND, ["a", "b"], now=0.0)
    idle.keep(replace(KIND, threads=2), ["c"], now=10.0)
    idle.keep(KIND, ["d", "e"], now=90.0)
    limits = Limits(idle_s=600.0, most=3)
    assert idle.take_expired(5.0, limits) == []
    assert idle.take_expired(100.0, limits) == ["a", "b"]
    assert idle.take_expired(100.0, replace(limits, most=1)) == ["c"]
    assert idle.actors == ["d", "e"]


def test_workers_of_a_ray_that_is_gone_are_forgotten():
    idle = IdleWorkers()
    idle.keep(KIND, ["worker"], now=0.0)
    idle.forget_other_sessions("session")
    assert len(idle) == 1
    idle.forget_other_sessions("another")
    assert len(idle) == 0
