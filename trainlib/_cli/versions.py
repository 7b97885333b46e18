"""Which versions are installed, found without importing anything."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from trainlib import __version__

__all__ = ["FRAMEWORKS", "installed_versions", "version_of"]

_SERVICES = {"Ray": "ray", "Prefect": "prefect", "MLflow": "mlflow"}
FRAMEWORKS = {
    "torch": "torch",
    "TensorFlow": "tensorflow",
    "Horovod": "horovod",
    "XGBoost": "xgboost",
    "LightGBM": "lightgbm",
}
"""The frameworks that have a trainer, and their packages."""

_BUILDS = {"xgboost": ("xgboost-cpu",)}
"""Other packages that bring a framework."""


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


def version_of(package: str) -> str | None:
    """The version of a package, or of another build of it. None if it is not installed."""
    for name in (package, *_BUILDS.get(package, ())):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
