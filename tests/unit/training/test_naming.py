"""What runs are called that nobody has given a name."""

from __future__ import annotations

from datetime import datetime
from functools import partial

import pytest

from trainlib import DataParallelTrainer, ScalingConfig
from trainlib._training.naming import sweep_name, training_name

NOW = datetime(2026, 1, 31, 9, 30)


def classify(config):
    pass


class Classify:
    def __call__(self, config):
        pass


@pytest.mark.parametrize(
    ("function", "name"),
    [(classify, "classify"), (partial(classify), "classify"), (Classify(), "Classify"), (lambda config: None, None)],
)
def test_a_training_is_called_by_its_trainer_and_its_function(function, name):
    trainer = DataParallelTrainer(function, scaling_config=ScalingConfig(num_workers=2))
    assert training_name(trainer, NOW) == f"DataParallelTrainer_2026-01-31_09-30-00 · {name or 'a function'} x2"


def test_the_name_of_a_sweep_over_much_is_still_short():
    name = sweep_name("classify", [f"model.layer_{number}" for number in range(50)], NOW)
    assert name.startswith("sweep · classify over layer_0, layer_1, ")
    assert name.endswith("… · 2026-01-31 09:30:00")
    assert len(name) < 100
    assert sweep_name("classify", [], NOW) == "sweep · classify · 2026-01-31 09:30:00"
