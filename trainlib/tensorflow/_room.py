"""What the rest of trainlib knows about TensorFlow."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.tensorflow._config import TensorflowConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=TensorflowConfig,
    config_arguments=("tensorflow_config", "tensorflow_backend"),
    trainer="trainlib.tensorflow:TensorflowTrainer",
    checkpoint="trainlib.tensorflow:TensorflowCheckpoint",
    served="trainlib.tensorflow._served",
    packages=("tensorflow", "tf_keras"),
    extra="tensorflow",
    averages_gradients=True,
)
