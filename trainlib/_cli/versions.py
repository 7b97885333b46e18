"""Which versions are installed, found without importing anything."""

from __future__ import annotations

import platform

from trainlib import __version__
from trainlib._distributions import version_of

__all__ = ["FRAMEWORKS", "installed_versions"]

_SERVICES = {"Ray": "ray", "Prefect": "prefect", "MLflow": "mlflow"}
FRAMEWORKS = {
    "torch": "torch",
    "TensorFlow": "tensorflow",
    "Horovod": "horovod",
    "XGBoost": "xgboost",
    "LightGBM": "lightgbm",
    "scikit-learn": "sklearn",
    "Transformers": "transformers",
    "Accelerate": "accelerate",
    "Gymnasium": "gymnasium",
    "Lightning": "lightning",
}
"""The frameworks that can be trained with, and their packages by import name. RLlib is a part of Ray."""


def installed_versions() -> dict[str, str]:
    """trainlib, Python, the services, and those frameworks that are installed.

    Example:
        >>> list(installed_versions())[:5]
        ['trainlib', 'Python', 'Ray', 'Prefect', 'MLflow']
    """
    found = {name: version_of(package) for name, package in {**_SERVICES, **FRAMEWORKS}.items()}
    return {
        "trainlib": __version__,
        "Python": platform.python_version(),
        **{name: each for name, each in found.items() if each is not None},
    }
