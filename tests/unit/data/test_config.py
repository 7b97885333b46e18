"""Settings of datasets, and subclasses of them."""

from __future__ import annotations

from typing import Any

import cloudpickle
import pytest
from pydantic import ValidationError

from trainlib import DataConfig, DataParallelTrainer


class Own(DataConfig):
    def __init__(self, seed: int, **more: Any) -> None:
        super().__init__(**more)
        self.seed = seed

    def configure(self, datasets, world_size, worker_handles, worker_node_ids, **kwargs):
        return [{} for _ in range(world_size)]


def test_a_subclass_has_attributes_of_its_own_and_is_a_trainers_config():
    own = Own(3, datasets_to_split="all")
    assert (own.seed, own.datasets_to_split) == (3, "all")
    sent = cloudpickle.loads(cloudpickle.dumps(own))
    assert (sent.seed, sent.datasets_to_split) == (3, "all")
    assert DataParallelTrainer(print, dataset_config=own).dataset_config is own
    own.datasets_to_split = ["train"]
    assert own.splits("train")


def test_a_subclass_that_is_defined_in_a_function_can_be_sent_whatever_is_around_it():
    around = (number for number in range(3))  # cannot be pickled

    class Inner(DataConfig):
        def configure(self, *args, **kwargs):
            return []

    assert cloudpickle.loads(cloudpickle.dumps(Inner())).is_custom
    assert list(around) == [0, 1, 2]


def test_of_a_config_of_ones_own_it_is_not_known_who_gets_rows():
    assert DataConfig().gives_rows_to_each("train")
    assert not DataConfig().gives_rows_to_each("validation")
    assert not Own(1).gives_rows_to_each("train")


def test_a_config_itself_takes_no_other_settings():
    with pytest.raises(ValidationError, match="seed"):
        DataConfig(seed=1)
    with pytest.raises(ValueError, match="seed"):
        DataConfig().seed = 1  # type: ignore[attr-defined]


def test_the_default_options_are_those_of_ray_data():
    import ray.data

    context = ray.data.DataContext.get_current()
    before, context.execution_options.preserve_order = context.execution_options.preserve_order, True
    try:
        options = DataConfig.default_ingest_options()
    finally:
        context.execution_options.preserve_order = before
    assert options.preserve_order
    assert options is not context.execution_options
