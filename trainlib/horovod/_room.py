"""What the rest of trainlib knows about Horovod."""

from __future__ import annotations

from trainlib._rooms import Room
from trainlib.horovod import _installed as installed
from trainlib.horovod._config import HorovodConfig

__all__ = ["ROOM"]

ROOM = Room(
    config_class=HorovodConfig,
    # One of Ray's guides passes a HorovodConfig as tensorflow_backend.
    config_arguments=("horovod_config", "horovod_backend", "tensorflow_backend"),
    trainer="trainlib.horovod:HorovodTrainer",
    packages=("horovod",),
    extra="horovod",
    check=installed.require,  # it has to be built for the frameworks that are installed
    averages_gradients=True,
)
