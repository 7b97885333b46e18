"""TensorFlow's settings, also those of Ray Train."""

from __future__ import annotations

import pytest
from ray.train.tensorflow import TensorflowConfig as RaysTensorflowConfig

from trainlib.errors import InvalidArgumentError
from trainlib.tensorflow import TensorflowConfig, TensorflowTrainer
from trainlib.torch import TorchTrainer


def train_func() -> None:
    pass


def test_rays_settings_are_taken():
    trainer = TensorflowTrainer(train_func, tensorflow_config=RaysTensorflowConfig())
    assert trainer.backend_config == TensorflowConfig()
    with pytest.raises(InvalidArgumentError, match="torch_config is a TensorflowConfig: pass a TorchConfig"):
        TorchTrainer(train_func, torch_config=RaysTensorflowConfig())
