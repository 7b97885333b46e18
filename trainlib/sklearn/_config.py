"""scikit-learn trains in one process: there is nothing to set up around it."""

from __future__ import annotations

from typing import ClassVar

from trainlib._execution.backend import BackendConfig

__all__ = ["SklearnConfig"]


class SklearnConfig(BackendConfig):
    """scikit-learn's settings, of which there are none.

    Example:
        >>> from trainlib.sklearn import SklearnConfig
        >>> SklearnConfig().framework
        'sklearn'
    """

    framework: ClassVar[str] = "sklearn"
    state_module: ClassVar[str | None] = "trainlib.sklearn._state"
