"""What is set up around an RLlib algorithm: nothing but its place in the gang's room."""

from __future__ import annotations

from typing import ClassVar

from trainlib._execution.backend import BackendConfig

__all__ = ["RLConfig"]


class RLConfig(BackendConfig):
    """The settings of what is around an algorithm. There are none: those of the algorithm are in RLTrainer's ``config``.

    Example:
        >>> RLConfig().framework
        'rl'
    """

    framework: ClassVar[str] = "rl"
    starts_actors: ClassVar[bool] = True
